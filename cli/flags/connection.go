// Package flags binds kubectl's connection flags, -f and environment to the library, for programs built on cobra and pflag.
//
//	connection := flags.NewConnection()
//	connection.AddFlags(cmd.PersistentFlags())
//	…
//	client, err := connection.Client(ctx)
package flags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/internal/flagset"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// Connection has the values of kubectl's connection flags and opens a client with them. Set the fields, or parse the flags of
// AddFlags, before calling further methods. These methods are safe for concurrent use.
type Connection struct {
	Kubeconfig, Context, Cluster, User string
	// NamespaceFlag is the value of --namespace; see Namespace.
	NamespaceFlag string

	Server, TLSServerName     string
	CertificateAuthority      string
	ClientCertificate         string
	ClientKey                 string
	Insecure                  bool
	Token, Username, Password string
	As, AsUID                 string
	AsGroups, AsUserExtra     []string
	RequestTimeout            string
	DisableCompression        bool
	// CacheDir is the folder of the discovery cache shared with kubectl; "" means no cache.
	CacheDir string

	// UserAgent names the program, as in transport.Options.
	UserAgent string
	// FieldManager is the default field manager of writes.
	FieldManager string
	// CheckExec is called with the program of a kubeconfig's credential plugin before the plugin may run. Its error fails the connection.
	CheckExec func(command string) error
	// OnWarning is called with every warning of the server.
	OnWarning func(ctx context.Context, text string)
	// OnAttempt is called after every attempt of a request.
	OnAttempt func(ctx context.Context, attempt transport.Attempt)

	mu      sync.Mutex
	config  *transport.Config
	timeout time.Duration // of requests; 0 means none
	conn    *transport.Conn
	client  *dynamic.Client
	schemas *schema.Client
}

// NewConnection returns a Connection with kubectl's defaults: kubectl's discovery cache, and no request timeout.
func NewConnection() *Connection {
	c := &Connection{RequestTimeout: "0"}
	if dir, err := discovery.DefaultCacheDir(); err == nil {
		c.CacheDir = dir
	}
	return c
}

// ForContext returns a connection to another context. It has the flags and hooks of c, except for the flags that name or change a server, a
// user or a credential.
func (c *Connection) ForContext(name string) *Connection {
	return &Connection{
		Kubeconfig: c.Kubeconfig, Context: name, NamespaceFlag: c.NamespaceFlag, Insecure: c.Insecure,
		As: c.As, AsUID: c.AsUID, AsGroups: c.AsGroups, AsUserExtra: c.AsUserExtra,
		RequestTimeout: c.RequestTimeout, DisableCompression: c.DisableCompression, CacheDir: c.CacheDir,
		UserAgent: c.UserAgent, FieldManager: c.FieldManager, OnWarning: c.OnWarning, OnAttempt: c.OnAttempt, CheckExec: c.CheckExec,
	}
}

// AddFlags defines kubectl's connection flags in fs, usually the persistent flags of the root command. Flags and shorthands of fs
// are left out, and so are flags and shorthands in without: AddFlags(fs, "password", "-s"). A program's own flag can set a field of c
// in place of a flag that is left out.
func (c *Connection) AddFlags(fs *pflag.FlagSet, without ...string) {
	flagset.Define(fs, c.defineFlags, without...)
}

func (c *Connection) defineFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig, "Path to the kubeconfig file to use for CLI requests.")
	fs.StringVar(&c.CacheDir, "cache-dir", c.CacheDir, "Default cache directory")
	fs.StringVar(&c.Context, "context", c.Context, "The name of the kubeconfig context to use")
	fs.StringVar(&c.Cluster, "cluster", c.Cluster, "The name of the kubeconfig cluster to use")
	fs.StringVar(&c.User, "user", c.User, "The name of the kubeconfig user to use")
	fs.StringVarP(&c.NamespaceFlag, "namespace", "n", c.NamespaceFlag, "If present, the namespace scope for this CLI request")

	fs.StringVarP(&c.Server, "server", "s", c.Server, "The address and port of the Kubernetes API server")
	fs.StringVar(&c.TLSServerName, "tls-server-name", c.TLSServerName, "Server name to use for server certificate validation. If it is not provided, the hostname used to contact the server is used")
	fs.StringVar(&c.CertificateAuthority, "certificate-authority", c.CertificateAuthority, "Path to a cert file for the certificate authority")
	fs.StringVar(&c.ClientCertificate, "client-certificate", c.ClientCertificate, "Path to a client certificate file for TLS")
	fs.StringVar(&c.ClientKey, "client-key", c.ClientKey, "Path to a client key file for TLS")
	fs.BoolVar(&c.Insecure, "insecure-skip-tls-verify", c.Insecure, "If true, the server's certificate will not be checked for validity. This will make your HTTPS connections insecure")
	fs.StringVar(&c.Token, "token", c.Token, "Bearer token for authentication to the API server")
	fs.StringVar(&c.Username, "username", c.Username, "Username for basic authentication to the API server")
	fs.StringVar(&c.Password, "password", c.Password, "Password for basic authentication to the API server")
	fs.StringVar(&c.As, "as", c.As, "Username to impersonate for the operation. User could be a regular user or a service account in a namespace.")
	fs.StringVar(&c.AsUID, "as-uid", c.AsUID, "UID to impersonate for the operation.")
	fs.StringArrayVar(&c.AsGroups, "as-group", c.AsGroups, "Group to impersonate for the operation, this flag can be repeated to specify multiple groups.")
	fs.StringArrayVar(&c.AsUserExtra, "as-user-extra", c.AsUserExtra, "User extras to impersonate for the operation, this flag can be repeated to specify multiple values for the same key.")
	fs.StringVar(&c.RequestTimeout, "request-timeout", c.RequestTimeout, "The length of time to wait before giving up on a single server request. Non-zero values should contain a corresponding time unit (e.g. 1s, 2m, 3h). A value of zero means don't timeout requests.")
	fs.BoolVar(&c.DisableCompression, "disable-compression", c.DisableCompression, "If true, opt-out of response compression for all requests to the server")
}

// ConfigError is the error of flags, environment and kubeconfig files without a usable cluster.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// Config returns the configuration of the flags, the environment and the kubeconfig files. It is loaded once. Changes before the
// first call of another method hold for the client. The timeout of --request-timeout is not part of it: the client adds it to
// a WrapTransport of the program.
func (c *Connection) Config(ctx context.Context) (*transport.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.configLocked(ctx)
}

func (c *Connection) configLocked(ctx context.Context) (*transport.Config, error) {
	if c.config != nil {
		return c.config, nil
	}
	cfg, err := c.load(ctx)
	if err != nil {
		return nil, &ConfigError{err}
	}
	if err := c.override(cfg); err != nil {
		return nil, err
	}
	if cfg.Exec != nil && c.CheckExec != nil && c.Token == "" && c.Username == "" {
		if err := c.CheckExec(cfg.Exec.Command); err != nil {
			return nil, err
		}
	}
	c.config = cfg
	return cfg, nil
}

func (c *Connection) load(ctx context.Context) (*transport.Config, error) {
	opts := &transport.LoadOptions{Path: c.Kubeconfig, Context: c.Context, Cluster: c.Cluster, User: c.User, Namespace: c.NamespaceFlag}
	if c.Server == "" {
		return transport.Load(ctx, opts)
	}
	server, err := serverURL(c.Server)
	if err != nil {
		return nil, err
	}
	file, err := transport.LoadKubeconfig(c.Kubeconfig)
	if err != nil {
		if c.Kubeconfig == "" && errors.Is(err, os.ErrNotExist) && c.Context == "" && c.Cluster == "" && c.User == "" {
			return &transport.Config{Server: server, Options: transport.Options{Namespace: c.NamespaceFlag}}, nil
		}
		return nil, err
	}
	return c.loadWithServer(ctx, server, file, opts)
}

// loadWithServer loads a context with the server of the flags. The cluster of the context may be invalid or missing.
func (c *Connection) loadWithServer(ctx context.Context, server string, file *kubeconfig.File, opts *transport.LoadOptions) (*transport.Config, error) {
	name := c.Context
	if name == "" {
		name = file.CurrentContext
	}
	if _, ok := file.Contexts[name]; !ok && c.Context == "" && c.User == "" {
		return &transport.Config{Server: server, Options: transport.Options{Namespace: c.NamespaceFlag}}, nil
	}
	opts.Path = ""
	opts.Kubeconfig = c.withServer(file, file.Contexts[name].Cluster, server)
	return transport.Load(ctx, opts)
}

// withServer returns a copy of file with the server of the flags in a context's cluster. Credentials and TLS settings depend on the scheme
// of this server. As in kubectl, tls-server-name of the kubeconfig holds for the kubeconfig's server only.
func (c *Connection) withServer(file *kubeconfig.File, cluster, server string) *kubeconfig.File {
	cluster = cmp.Or(c.Cluster, cluster)
	changed, exists := file.Clusters[cluster]
	if !exists && c.Cluster != "" {
		return file // an error names the existing clusters
	}
	changed.Server = server
	changed.TLSServerName = ""
	copied := *file
	copied.Clusters = maps.Clone(file.Clusters)
	copied.Clusters[cluster] = changed
	return &copied
}

func (c *Connection) override(cfg *transport.Config) error {
	if strings.HasPrefix(strings.ToLower(cfg.Server), "https://") { // as in kubectl: without TLS, credentials could be read on the network
		c.overrideTLS(cfg)
		c.overrideCredential(cfg)
	}
	if err := c.overrideImpersonation(cfg); err != nil {
		return err
	}
	var err error
	if c.timeout, err = parseTimeout(c.RequestTimeout); err != nil {
		return err
	}
	cfg.DisableCompression = cfg.DisableCompression || c.DisableCompression
	cfg.UserAgent = c.UserAgent
	cfg.OnWarning = c.OnWarning
	cfg.OnAttempt = c.OnAttempt
	return nil
}

func (c *Connection) overrideTLS(cfg *transport.Config) {
	if c.TLSServerName != "" {
		cfg.ServerName = c.TLSServerName
	}
	if c.CertificateAuthority != "" {
		cfg.CAFile = c.CertificateAuthority
		cfg.CAData = nil
		cfg.Insecure = false
	}
	if c.Insecure {
		cfg.Insecure = true
		cfg.CAFile = ""
		cfg.CAData = nil
	}
	if c.ClientCertificate != "" {
		cfg.CertFile = c.ClientCertificate
		cfg.CertData = nil
	}
	if c.ClientKey != "" {
		cfg.KeyFile = c.ClientKey
		cfg.KeyData = kubeconfig.Secret{}
	}
}

func (c *Connection) overrideCredential(cfg *transport.Config) {
	if c.Token != "" {
		cfg.Token = kubeconfig.NewSecret(c.Token)
		cfg.TokenFile = ""
	}
	if c.Username != "" {
		cfg.Username = c.Username
	}
	if c.Password != "" {
		cfg.Password = kubeconfig.NewSecret(c.Password)
	}
}

func (c *Connection) overrideImpersonation(cfg *transport.Config) error {
	if c.As != "" {
		cfg.Impersonate.User = c.As
	}
	if c.AsUID != "" {
		cfg.Impersonate.UID = c.AsUID
	}
	if len(c.AsGroups) > 0 {
		cfg.Impersonate.Groups = c.AsGroups
	}
	for _, pair := range c.AsUserExtra {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return fmt.Errorf("--as-user-extra %q: not a key=value pair", pair)
		}
		if cfg.Impersonate.Extra == nil {
			cfg.Impersonate.Extra = map[string][]string{}
		}
		cfg.Impersonate.Extra[key] = append(cfg.Impersonate.Extra[key], value)
	}
	return nil
}

func serverURL(server string) (string, error) {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	if u, err := url.Parse(server); err != nil || u.Host == "" {
		return "", fmt.Errorf("--server %q: not a URL", server)
	}
	return server, nil
}

func parseTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by a corresponding time unit (e.g. 1s | 2m | 3h)")
	}
	return timeout, nil
}
