// Package resulttest holds results that tests of several packages share.
package resulttest
