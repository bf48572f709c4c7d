// Package merge combines the results that several load hosts measured in one run.
package merge
