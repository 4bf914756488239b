// Package controllerruntime lets a program that uses controller-runtime take its client, cache and RESTMapper from anykind, by
// one call of its package manager:
//
//	from, err := controllerruntime.FromConfig(ctx, config) // or New, with a *dynamic.Client
//	…
//	mgr, err := ctrl.NewManager(manager.Configure(from, ctrl.Options{}))
//
// Everything else stays as it is: reconcilers, builders, predicates, indexes, schemes, client and cache options. What a manager
// makes itself, mgr.GetAPIReader, events and leader election, remains controller-runtime's and client-go's. All
// requests take anykind's connection, so credentials, retries, certificates and warnings are those of package transport; names are resolved
// by live discovery; informers are caches of package cache, which recover by themselves.
//
// As in controller-runtime, reads return copies; handlers, predicates and reads with UnsafeDisableDeepCopy get the stored objects.
// These are read-only: a write stays in its object until the next version and leaves indexes stale. With
// KUBE_CACHE_MUTATION_DETECTOR=true the process panics then. Constructors.Intern makes unstructured objects share equal parts,
// which saves memory, but a write then changes other objects, too.
//
// # Differences
//
//   - Typed objects and metadata travel as JSON, where controller-runtime uses Protobuf for built-in kinds: a cache of them takes
//     more CPU until it is synced, one of unstructured objects less. docs/BENCHMARKS.md compares managers.
//   - A handler that lags gets several changes of one object as one. An object that was replaced by another of its name is
//     delivered as deleted and added.
//   - An informer keeps its objects while the server does not serve their kind.
//   - A cached object that does not fit its Go type is reported to the WatchErrorHandler and left out; the others stay current.
//   - With read-your-writes consistency, several namespaces for a kind are waited for correctly.
package controllerruntime
