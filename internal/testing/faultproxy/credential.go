package faultproxy

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// tokenFileEnv makes the test's binary a credential plugin, which prints the token in that file.
const tokenFileEnv = "ANYKIND_FAULTPROXY_TOKEN"

func init() {
	if path := os.Getenv(tokenFileEnv); path != "" {
		os.Exit(runPlugin(path))
	}
}

func runPlugin(path string) int {
	token, err := os.ReadFile(path)
	if err != nil {
		return 101
	}
	err = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"kind": "ExecCredential", "apiVersion": kubeconfig.ExecV1, "status": map[string]any{"token": string(token)},
	})
	if err != nil {
		return 102
	}
	return 0
}

// credential is the token that the proxy accepts, and the file from which the plugin reads it.
type credential struct {
	path  string
	token string
	count int
}

// expire replaces the valid token.
func (c *credential) expire() error {
	next := fmt.Sprint("token-", c.count+1)
	// Atomically, or a plugin might print half of it.
	if err := os.WriteFile(c.path+".new", []byte(next), 0o600); err != nil {
		return err
	}
	if err := os.Rename(c.path+".new", c.path); err != nil {
		return err
	}
	c.token, c.count = next, c.count+1
	return nil
}

// Config returns a client configuration with a credential plugin, the test's own binary.
func (p *Proxy) Config() (*transport.Config, error) {
	command, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &transport.Config{Server: p.url, Exec: &transport.ExecPlugin{Exec: kubeconfig.Exec{
		APIVersion: kubeconfig.ExecV1, Command: command, InteractiveMode: kubeconfig.InteractiveNever,
		// Programs with the race detector would wait for a second before they exit.
		Env: []kubeconfig.EnvVar{{Name: tokenFileEnv, Value: transport.NewSecret(p.valid.path)}, {Name: "GORACE", Value: transport.NewSecret("atexit_sleep_ms=0")}},
	}}}, nil
}

// isAuthenticated reports whether a request has the valid token.
func (p *Proxy) isAuthenticated(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+p.valid.token)) == 1
}

func newCredential(dir string) (*credential, error) {
	valid := &credential{path: filepath.Join(dir, "token")}
	return valid, valid.expire()
}
