// Package compat is the root of a module for migrating a program call by call, next to client-go and libraries built on
// client-go:
//
//   - package restconfig converts a connection to a rest.Config, and a rest.Config to a connection;
//   - package clientgo has client-go's interfaces over anykind: the dynamic client, discovery with its cache, the mapper,
//     cli-runtime's RESTClientGetter, and dynamic informers;
//   - package migration has the snippets of docs/MIGRATION.md.
//
// docs/MIGRATION.md maps calls of client-go and related libraries to anykind's.
package compat
