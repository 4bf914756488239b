// Package peers tests third-party clients against apitest: client-go's typed clients with Protobuf, its reflectors with and
// without WatchList, its leader election, and controller-runtime's test suite of its client.
package peers
