// Package cache keeps a local copy of what a resource has and keeps it true: [New] makes a [Cache] over a
// *dynamic.Resource, Run fills and follows, Sync waits until it is whole, Get, List and By read it without a request,
// Changes tells each consumer what has changed at that consumer's own pace. A [Set] shares caches between users.
//
// What the cache gives out is shared: read it, and copy what you change. That holds for parts, too: what is equal in
// full objects, their labels, containers or managed fields, is held once for all of them, and what has not changed of an
// object stays in its next state, unless a Transform might change it.
package cache
