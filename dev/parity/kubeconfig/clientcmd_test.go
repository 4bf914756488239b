package kubeconfig_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // as kubectl: oidc, and what says that gcp and azure are gone
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/anykind/anykind/transport"
)

// loadAnykind loads a kubeconfig with anykind, up to the first request.
func loadAnykind(ctx context.Context, c *kubeconfigCase) (*transport.Config, error) {
	cfg, err := transport.Load(ctx, &transport.LoadOptions{
		Path: c.path, Context: c.context, Cluster: c.cluster, User: c.user, Namespace: c.namespace,
	})
	if err != nil {
		return nil, err
	}
	if cfg.Server == "http://localhost:8001" {
		return nil, errors.New("no kubeconfig; a kubectl proxy runs on this machine")
	}
	conn, err := transport.Open(cfg)
	if err != nil {
		return nil, err
	}
	conn.Close()
	return cfg, nil
}

// loadClientGo loads a kubeconfig as kubectl does, up to the first request.
func loadClientGo(c *kubeconfigCase) (cfg *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.path
	overrides := &clientcmd.ConfigOverrides{
		CurrentContext: c.context,
		Context:        clientcmdapi.Context{Cluster: c.cluster, AuthInfo: c.user, Namespace: c.namespace},
	}
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	if cfg, err = loading.ClientConfig(); err != nil {
		return nil, "", err
	}
	if namespace, _, err = loading.Namespace(); err != nil {
		return nil, "", err
	}
	// rest.HTTPClientFor does these two. It would also start a goroutine that never ends for each certificate file.
	if _, err := rest.TLSConfigFor(cfg); err != nil {
		return nil, "", err
	}
	if _, err := rest.HTTPWrappersForConfig(cfg, http.DefaultTransport); err != nil {
		return nil, "", err
	}
	return cfg, namespace, nil
}

func TestKubeconfigs_LoadAsClientGo(t *testing.T) {
	pki := newPKI(t)
	names := map[string]bool{}
	for _, c := range kubeconfigCases() {
		require.False(t, names[c.name], "two cases are named %q", c.name)
		names[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			c.prepare(t, pki)

			theirs, namespace, theirErr := loadClientGo(&c)
			ours, ourErr := loadAnykind(t.Context(), &c)

			switch {
			case c.differs != "":
				require.NoError(t, theirErr, "the case is no difference any more: %s", c.differs)
				require.Error(t, ourErr, "the case is no difference any more: %s", c.differs)
			case c.rejected:
				require.Error(t, theirErr, "client-go accepts it")
				require.Error(t, ourErr, "anykind accepts what client-go refuses: %v", theirErr)
			default:
				require.NoError(t, theirErr)
				require.NoError(t, ourErr)
				assert.Equal(t, endOfClientGo(t, theirs, namespace), endOfAnykind(t, ours))
			}
			if ourErr != nil {
				assert.NotContains(t, ourErr.Error(), secret)
			}
		})
	}
	assert.GreaterOrEqual(t, len(names), 45)
}

// prepare writes the case's files to a temporary folder and hides the user's own.
func (c *kubeconfigCase) prepare(t *testing.T, pki *strings.Replacer) {
	dir := t.TempDir()
	replace := func(text string) string { return strings.ReplaceAll(pki.Replace(text), "<DIR>", dir) }
	for name, text := range c.files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(replace(text)), 0o600))
	}
	home := filepath.Join(dir, "home")
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	was := clientcmd.RecommendedHomeFile // found when the program starts
	clientcmd.RecommendedHomeFile = filepath.Join(home, ".kube", "config")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = was })
	var list []string
	for _, name := range c.list {
		if name != "" {
			name = filepath.Join(dir, name)
		}
		list = append(list, name)
	}
	t.Setenv("KUBECONFIG", strings.Join(list, string(filepath.ListSeparator)))
	if c.path != "" {
		c.path = filepath.Join(dir, c.path)
	}
	if c.chdir != "" {
		t.Chdir(filepath.Join(dir, c.chdir))
		t.Setenv("KUBECONFIG", strings.Join(c.list, string(filepath.ListSeparator)))
	}
}
