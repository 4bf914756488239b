// Package cli is the root of the packages that programs like kubectl are built from:
//
//   - package flags has kubectl's connection flags, and opens a client with them;
//   - package manifest reads the objects of files, as -f does;
//   - package print writes objects as kubectl get does;
//   - package progress shows what a command waits for.
//
// cmd/anyctl is such a program.
package cli
