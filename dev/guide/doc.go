// Package guide has tests alone. They run the programs of the pages of docs on a real API server.
package guide
