package change

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/resource"
)

// addFiles defines -f and -R, and connects the finder.
func addFiles(fs *pflag.FlagSet, s *command.State, finder *resource.Finder, contents string) {
	finder.Connection = s.Connection
	finder.Files.In = s.In
	finder.Files.AddFlags(fs, contents)
}

// checkAll rejects --all together with a selector.
func checkAll(all bool, labelSelector, fieldSelector string) error {
	switch {
	case all && labelSelector != "":
		return errors.New("cannot set --all and --selector at the same time")
	case all && fieldSelector != "":
		return errors.New("cannot set --all and --field-selector at the same time")
	}
	return nil
}

func kindName(kind, group string) string {
	if group == "" {
		return strings.ToLower(kind)
	}
	return strings.ToLower(kind) + "." + group
}
