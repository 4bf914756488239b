// Package execplugin authenticates with the credentials printed by an exec plugin, like kubectl:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins.
//
// An [Authenticator] is a [credential.Cache] whose Fetch runs the program once: it looks up the command and checks it against the
// allowlist (command.go), passes the request in KUBERNETES_EXEC_INFO, runs the program until ctx ends, and parses the printed
// ExecCredential (output.go).
//
// Invariants: no error shows an argument, a value of the environment or any output of the program. The program gets the terminal
// only if its interactiveMode permits. It is killed with ctx, and after more than 1 MiB of output.
package execplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/transport/internal/credential"
	"github.com/anykind/anykind/transport/internal/subprocess"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// Config configures an exec plugin.
type Config struct {
	kubeconfig.Exec
	Allowlist []string // nil allows every command
	Cluster   Cluster  // without CAData
	CA        *credential.File
}

// Cluster is the cluster in KUBERNETES_EXEC_INFO.
type Cluster struct {
	Server             string          `json:"server"`
	ServerName         string          `json:"tls-server-name,omitempty"`
	Insecure           bool            `json:"insecure-skip-tls-verify,omitempty"`
	CAData             []byte          `json:"certificate-authority-data,omitempty"`
	ProxyURL           string          `json:"proxy-url,omitempty"`
	DisableCompression bool            `json:"disable-compression,omitempty"`
	Config             json.RawMessage `json:"config"`
}

// Authenticator authenticates with the program's output.
type Authenticator struct {
	*credential.Cache
	cfg Config

	// Replaced in tests.
	stderr          io.Writer
	stdinIsTerminal func() bool
	hasTerminal     func() bool   // standard input or not
	waitDelay       time.Duration // for remaining child processes to close the output
}

// New validates cfg without running the program. The command need not be installed yet.
func New(cfg Config) (*Authenticator, error) {
	if cfg.Command == "" {
		return nil, errors.New("exec plugin: no command (set the path or the name of a program)")
	}
	a := &Authenticator{
		cfg: cfg, stderr: os.Stderr, waitDelay: 2 * time.Second, hasTerminal: subprocess.HasTerminal,
		stdinIsTerminal: func() bool { return subprocess.IsTerminal(os.Stdin) },
	}
	a.Cache = &credential.Cache{Name: fmt.Sprintf("exec plugin %q", cfg.Command), Fetch: a.fetch, Now: time.Now}
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	return a, nil
}

func (c *Config) validate() error {
	if c.APIVersion != kubeconfig.ExecV1 && c.APIVersion != kubeconfig.ExecV1Beta1 {
		return fmt.Errorf("unknown apiVersion %q (it must be %s or %s; an older plugin needs an update)",
			c.APIVersion, kubeconfig.ExecV1, kubeconfig.ExecV1Beta1)
	}
	modes := []string{"", kubeconfig.InteractiveNever, kubeconfig.InteractiveIfAvailable, kubeconfig.InteractiveAlways}
	if !slices.Contains(modes, c.InteractiveMode) {
		return fmt.Errorf("unknown interactiveMode %q (it must be Never, IfAvailable or Always)", c.InteractiveMode)
	}
	for _, variable := range c.Env {
		if variable.Name == "" || strings.ContainsAny(variable.Name, "=\x00") || strings.Contains(variable.Value.Reveal(), "\x00") {
			return fmt.Errorf("invalid environment variable %q (it needs a name without \"=\", and no NUL)", variable.Name)
		}
	}
	if len(c.Cluster.Config) > 0 && !json.Valid(c.Cluster.Config) {
		return errors.New("the cluster's extension client.authentication.k8s.io/exec is no JSON")
	}
	if _, err := c.lookPath(); errors.Is(err, errNotAllowed) {
		return err
	}
	return nil
}

func (a *Authenticator) fetch(ctx context.Context) (*credential.Credential, error) {
	output, err := a.run(ctx)
	var fetched *credential.Credential
	if err == nil {
		fetched, err = parseOutput(output, a.cfg.APIVersion)
	}
	if err == nil && !fetched.Expires.IsZero() && !a.Now().Before(fetched.Expires) {
		err = fmt.Errorf("the credential that it printed expired at %s (log in again with the plugin's own command, "+
			"empty its cache, or check this machine's clock)", fetched.Expires.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	return fetched, nil
}
