// Package peers tests that other projects' clients work against apitest: client-go's typed clients, which send Protobuf, its
// reflectors with and without WatchList, and its leader election; controller-runtime's own test suite of its client.
package peers
