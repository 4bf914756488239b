package get

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/cli/internal/command"
)

// versions is the output of the command version.
type versions struct {
	ClientVersion *clientVersion `json:"clientVersion,omitempty"`
	ServerVersion *version.Info  `json:"serverVersion,omitempty"`
}

// clientVersion is the version of anyctl and of its library.
type clientVersion struct {
	Version   string `json:"version"`
	Revision  string `json:"revision,omitempty"`
	GoVersion string `json:"goVersion"`
}

func newVersion(s *command.State) *cobra.Command {
	var clientOnly bool
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the client and server version information",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("extra arguments: %v", args)
			}
			if output != "" && output != "yaml" && output != "json" {
				return errors.New("--output must be 'yaml' or 'json'")
			}
			found := versions{ClientVersion: ownVersion()}
			var serverErr error
			if !clientOnly {
				found.ServerVersion, serverErr = serverVersion(cmd, s)
			}
			return errors.Join(printVersions(s.Out, output, &found), serverErr)
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "If true, shows client version only (no server required).")
	cmd.Flags().StringVarP(&output, "output", "o", "", "One of 'yaml' or 'json'.")
	return cmd
}

func serverVersion(cmd *cobra.Command, s *command.State) (*version.Info, error) {
	client, err := s.Client(cmd.Context())
	if err != nil {
		return nil, err
	}
	return client.Discovery().ServerVersion(cmd.Context())
}

func ownVersion() *clientVersion {
	own := &clientVersion{Version: "(devel)"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return own
	}
	own.GoVersion = info.GoVersion
	if info.Main.Version != "" {
		own.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			own.Revision = setting.Value
		}
	}
	return own
}

func printVersions(w io.Writer, output string, found *versions) error {
	if output != "" {
		return encode(w, output, "  ", found)
	}
	if _, err := fmt.Fprintf(w, "Client Version: %s\n", found.ClientVersion.Version); err != nil || found.ServerVersion == nil {
		return err
	}
	_, err := fmt.Fprintf(w, "Server Version: %s\n", found.ServerVersion.GitVersion)
	return err
}
