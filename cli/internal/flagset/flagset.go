// Package flagset adds flags to the flags of a program.
package flagset

import (
	"slices"

	"github.com/spf13/pflag"
)

// Define calls define with an empty set, and adds its flags as AddMissing does.
func Define(fs *pflag.FlagSet, define func(added *pflag.FlagSet), without ...string) {
	added := pflag.NewFlagSet("", pflag.ContinueOnError)
	define(added)
	AddMissing(fs, added, without...)
}

// AddMissing adds flags to fs. Flags and shorthands of fs and of without are left out. A dash precedes a shorthand in without.
func AddMissing(fs, added *pflag.FlagSet, without ...string) {
	added.VisitAll(func(flag *pflag.Flag) {
		if fs.Lookup(flag.Name) != nil || slices.Contains(without, flag.Name) {
			return
		}
		if flag.Shorthand != "" && (fs.ShorthandLookup(flag.Shorthand) != nil || slices.Contains(without, "-"+flag.Shorthand)) {
			flag.Shorthand = ""
		}
		fs.AddFlag(flag)
	})
}
