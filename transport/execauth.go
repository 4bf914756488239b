package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/anykind/anykind/transport/kubeconfig"
)

// execAuthenticator asks with what a program printed. It is safe for concurrent use.
type execAuthenticator struct {
	*sharedIdentity
	plugin    *ExecPlugin
	cluster   execCluster // without the authorities
	authority *renewedFile

	// What tests replace.
	stderr      io.Writer
	interactive func() bool   // standard input is a terminal
	terminal    func() bool   // this process has one, be it standard input or not
	grace       time.Duration // for what the program left behind to let go of its output
}

func newExecAuthenticator(cfg *Config) (authenticator, error) {
	if err := checkExecPlugin(cfg.Exec); err != nil {
		return nil, err
	}
	plugin := cfg.Exec.clone()
	a := &execAuthenticator{
		plugin: plugin,
		cluster: execCluster{
			Server: cfg.Server, ServerName: cfg.ServerName, Insecure: cfg.Insecure, ProxyURL: cfg.ProxyURL,
			DisableCompression: cfg.DisableCompression, Config: plugin.ClusterConfig,
		},
		authority:   inlineOrFile(cfg.CAData, cfg.CAFile),
		stderr:      os.Stderr,
		interactive: stdinIsTerminal,
		terminal:    hasTerminal,
		grace:       2 * time.Second,
	}
	a.sharedIdentity = &sharedIdentity{what: pluginName(a.plugin), obtain: a.obtain, now: time.Now}
	return a, nil
}

// checkExecPlugin finds out what cannot work, without running the program or asking whether it is there.
func checkExecPlugin(plugin *ExecPlugin) error {
	if plugin.Command == "" {
		return errors.New("exec plugin: there is no command: give the path or the name of a program")
	}
	err := checkCommand(plugin)
	if plugin.Allowed != nil && err == nil {
		_, err = allowedPath(plugin)
		// It may be installed until it is needed.
		if !errors.As(err, new(notAllowedError)) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", pluginName(plugin), err)
	}
	return nil
}

func checkCommand(plugin *ExecPlugin) error {
	switch plugin.APIVersion {
	case kubeconfig.ExecV1, kubeconfig.ExecV1Beta1:
	default:
		return fmt.Errorf("the apiVersion %q is not known: it must be %s or %s; an older plugin needs an update",
			plugin.APIVersion, kubeconfig.ExecV1, kubeconfig.ExecV1Beta1)
	}
	switch plugin.InteractiveMode {
	case "", kubeconfig.InteractiveNever, kubeconfig.InteractiveIfAvailable, kubeconfig.InteractiveAlways:
	default:
		return fmt.Errorf("the interactiveMode %q is not known: it must be Never, IfAvailable or Always", plugin.InteractiveMode)
	}
	for _, variable := range plugin.Env {
		if variable.Name == "" || strings.ContainsAny(variable.Name, "=\x00") || strings.Contains(variable.Value.Reveal(), "\x00") {
			return fmt.Errorf("the environment variable %q cannot be set: it needs a name, and no \"=\" in it and no NUL", variable.Name)
		}
	}
	if len(plugin.ClusterConfig) > 0 && !json.Valid(plugin.ClusterConfig) {
		return errors.New("the cluster's extension client.authentication.k8s.io/exec is no JSON")
	}
	return nil
}

// pluginName is how errors call it: never with its arguments.
func pluginName(plugin *ExecPlugin) string { return fmt.Sprintf("exec plugin %q", plugin.Command) }

// obtain runs the program once.
func (a *execAuthenticator) obtain(ctx context.Context) (*identity, time.Time, error) {
	answer, err := a.run(ctx)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%s: %w", a.what, err)
	}
	who, expires, err := parseExecAnswer(answer, a.plugin.APIVersion)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%s: %w", a.what, err)
	}
	if !expires.IsZero() && !a.now().Before(expires) {
		return nil, time.Time{}, fmt.Errorf("%s: the credential that it printed expired at %s: log in again with the plugin's own command, "+
			"empty its cache, or check this machine's clock", a.what, expires.UTC().Format(time.RFC3339))
	}
	return who, expires, nil
}
