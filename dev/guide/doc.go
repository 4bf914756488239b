// Package guide has tests alone. They run the programs of the pages of docs on a real API server, and check links and Examples.
package guide
