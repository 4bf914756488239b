package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
)

// ExecPlugin is a program that prints a credential:
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins.
//
// It runs when a request needs a credential: for the first one, after the credential expired, and when the server
// answers 401. Requests of a [Conn] that need one at the same time wait for one run. The program is killed when nobody
// waits for it any more; on Unix its children are too, unless this process has a terminal, which they then share. What
// it writes to standard error is passed on to this process's, where users see prompts; what it prints is shown nowhere.
type ExecPlugin struct {
	// APIVersion is client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1.
	APIVersion string
	// Command is a path, or a name to look up in PATH.
	Command string
	// Args are shown to every user of the machine while the program runs; a secret belongs into Env. They and ClusterConfig
	// are left out where the plugin is printed, though not where it is an unexported field of another type.
	Args []string
	// Env is added to this program's own environment.
	Env []ExecEnv
	// InstallHint is shown when the command is not there.
	InstallHint string
	// InteractiveMode is Never, IfAvailable or Always: whether the program may or must have the terminal that is
	// this process's standard input. "" means IfAvailable.
	InteractiveMode string
	// ProvideClusterInfo hands the program the server's URL, its authorities and ClusterConfig.
	ProvideClusterInfo bool
	// ClusterConfig is the kubeconfig cluster's extension client.authentication.k8s.io/exec.
	ClusterConfig json.RawMessage
	// Allowed, where it is not nil, are the only commands that may run: names and paths, as the kubeconfig writes
	// them or as PATH leads to them. A name allows the path that it leads to, a path the name that leads there. An
	// empty list allows none.
	Allowed []string
}

// ExecEnv is a variable of the program's environment.
type ExecEnv struct {
	Name  string
	Value Secret
}

// String describes the plugin without its arguments and the values of its environment: they may be secrets.
func (p ExecPlugin) String() string { return p.LogValue().String() }

// Format implements fmt.Formatter with what String returns, for every verb.
func (p ExecPlugin) Format(state fmt.State, _ rune) { printSafe(state, p) }

// MarshalJSON implements json.Marshaler with what String returns.
func (p ExecPlugin) MarshalJSON() ([]byte, error) { return safeJSON(p) }

// LogValue implements slog.LogValuer, with what String shows.
func (p ExecPlugin) LogValue() slog.Value {
	names := make([]string, 0, len(p.Env))
	for _, variable := range p.Env {
		names = append(names, variable.Name)
	}
	return slog.GroupValue(slog.String("command", p.Command), slog.String("apiVersion", p.APIVersion),
		slog.Int("args", len(p.Args)), slog.Any("env", names))
}

// String is the variable's name: its value may be a secret.
func (e ExecEnv) String() string { return e.Name + "=…" }

// Format implements fmt.Formatter with what String returns, for every verb.
func (e ExecEnv) Format(state fmt.State, _ rune) { printSafe(state, e) }

// MarshalJSON implements json.Marshaler with what String returns.
func (e ExecEnv) MarshalJSON() ([]byte, error) { return safeJSON(e) }

// LogValue implements slog.LogValuer, with what String shows.
func (e ExecEnv) LogValue() slog.Value { return slog.StringValue(e.String()) }

// clone shares nothing with p.
func (p *ExecPlugin) clone() *ExecPlugin {
	own := *p
	own.Args, own.Env, own.Allowed = slices.Clone(p.Args), slices.Clone(p.Env), slices.Clone(p.Allowed)
	if own.ClusterConfig = bytes.Clone(p.ClusterConfig); len(own.ClusterConfig) == 0 {
		own.ClusterConfig = nil // which alone can be written as JSON
	}
	return &own
}
