// Package compat is the root of a module that lets a program take anykind one call at a time, next to client-go and what is
// built on it:
//
//   - package restconfig turns a connection into a rest.Config, and a rest.Config into a connection;
//   - package clientgo has client-go's interfaces over anykind: the dynamic client, discovery with its cache, the mapper,
//     cli-runtime's RESTClientGetter, and dynamic informers;
//   - package migration has the snippets of docs/MIGRATION.md.
//
// docs/MIGRATION.md maps calls of client-go and others to anykind's.
package compat
