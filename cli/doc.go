// Package cli is the root of the packages for building programs like kubectl:
//
//   - package commands has whole commands of anyctl;
//   - package flags defines kubectl's connection flags, -f and --dry-run, and opens a client with them;
//   - package resource finds the objects of a command line;
//   - package exit reports errors with kubectl's texts and exit codes;
//   - package print writes objects like kubectl get;
//   - package progress shows the progress of waiting commands;
//   - package tree finds owners and dependents.
//
// cmd/anyctl is built from them.
package cli
