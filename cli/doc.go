// Package cli is the root of the packages for building programs like kubectl:
//
//   - package flags defines kubectl's connection flags and -f, and opens a client with them;
//   - package print writes objects like kubectl get;
//   - package progress shows the progress of waiting commands.
//
// cmd/anyctl is built from them.
package cli
