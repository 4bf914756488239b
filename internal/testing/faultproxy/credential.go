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

// tokenFileEnv makes the test binary a credential plugin. The plugin prints the token in the named file.
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

// credential is the token accepted by the proxy and the plugin's token file.
type credential struct {
	path  string
	token string
	count int
}

// expire replaces the valid token.
func (c *credential) expire() error {
	next := fmt.Sprint("token-", c.count+1)
	// The rename is atomic: a plugin never prints half of a token.
	if err := os.WriteFile(c.path+".new", []byte(next), 0o600); err != nil {
		return err
	}
	if err := os.Rename(c.path+".new", c.path); err != nil {
		return err
	}
	c.token = next
	c.count = c.count + 1
	return nil
}

// Config returns a client configuration with a credential plugin. The plugin is the test binary.
func (p *Proxy) Config() (*transport.Config, error) {
	command, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &transport.Config{Server: p.url, Exec: &transport.ExecPlugin{Exec: kubeconfig.Exec{
		APIVersion: kubeconfig.ExecV1, Command: command, InteractiveMode: kubeconfig.InteractiveNever,
		// With the race detector a program waits for a second before it exits.
		Env: []kubeconfig.EnvVar{{Name: tokenFileEnv, Value: kubeconfig.NewSecret(p.valid.path)}, {Name: "GORACE", Value: kubeconfig.NewSecret("atexit_sleep_ms=0")}},
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
