// Package schemas tests the files of deploy/compose and deploy/k8s against the compose
// specification and the API of Kubernetes. It is a module of its own, so that the modules
// with these schemas are not dependencies of the project. Run it with -count 1: go test does
// not see that files outside of the module changed.
package schemas
