// Package cli is the root of the packages for building programs like kubectl:
//
//   - package flags defines kubectl's connection flags and opens a client with them;
//   - package manifest reads objects from files, like -f;
//   - package print writes objects like kubectl get;
//   - package progress shows the progress of waiting commands.
//
// cmd/anyctl is built from them.
package cli
