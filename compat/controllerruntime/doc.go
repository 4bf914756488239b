// Package controllerruntime gives a program of controller-runtime the client, cache and RESTMapper of anykind. A manager needs
// one call of package manager:
//
//	from, err := controllerruntime.FromConfig(ctx, config) // or New, with a *dynamic.Client
//	…
//	mgr, err := ctrl.NewManager(manager.Configure(from, ctrl.Options{}))
//
// Everything else stays as it is: reconcilers, builders, predicates, indexes, schemes, client and cache options.
// mgr.GetAPIReader, events and leader election remain controller-runtime's and client-go's. All requests use anykind's
// connection, so package transport provides credentials, retries, certificates and warnings. Live discovery resolves names.
// Informers are caches of package cache and recover by themselves.
//
// As in controller-runtime, reads return copies; handlers, predicates and reads with UnsafeDisableDeepCopy get the stored
// objects. Stored objects are read-only: a write lasts until the object's next version and leaves indexes stale. With
// KUBE_CACHE_MUTATION_DETECTOR=true the process panics after a write. Constructors.Intern saves memory by sharing equal parts of
// unstructured objects. A write then also changes objects with the same parts.
//
// # Differences
//
//   - Objects of generated types and metadata are received as Protobuf with [FromConfig], or with [New] and
//     transport.Options.Protobuf. Requests, unstructured objects outside of caches and deletions are JSON. docs/BENCHMARKS.md
//     compares managers.
//   - A slow handler gets several changes of an object as a single change. A replaced object (same name, new UID) is delivered
//     as deleted and added.
//   - An informer keeps its objects while the server does not serve their kind.
//   - A cached object that does not fit its Go type is reported to the WatchErrorHandler and left out. All other objects stay
//     current.
//   - With read-your-writes consistency, several namespaces for a kind are waited for correctly.
package controllerruntime
