// Package cli is the root of the packages that programs like kubectl are built from.
package cli
