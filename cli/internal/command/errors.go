package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/exit"
)

// ServerMessage returns the message of an API status error, or err.Error().
func ServerMessage(err error) string {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status.ErrStatus.Message
	}
	return err.Error()
}

// UsageError returns an error with kubectl's hint to the command's help.
func UsageError(cmd *cobra.Command, format string, args ...any) error {
	text, more, isLong := strings.Cut(fmt.Sprintf(format, args...), "\n")
	if isLong {
		more = "\n" + more
	}
	return exit.WithHelp(errors.New(text), fmt.Sprintf("%s\nSee '%s -h' for help and examples", more, cmd.CommandPath()))
}

// RunHelp is the function of a command that only has subcommands: it prints the help, and rejects arguments.
func RunHelp(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageError(cmd, "unknown command %q", strings.Join(args, " "))
	}
	return cmd.Help()
}

// SourceError adds the file name to err like kubectl: error when creating "web.yaml": …
func SourceError(verb, source string, err error) error {
	if source == "" || err == nil {
		return err
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return fmt.Errorf("error when %s %q: %w", verb, source, err)
	}
	changed := *status
	changed.ErrStatus.Message = fmt.Sprintf("error when %s %q: %s", verb, source, status.ErrStatus.Message)
	return &changed
}
