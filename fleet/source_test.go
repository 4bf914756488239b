package fleet_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/fleet"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// kubeconfigText returns a kubeconfig with a context for each pair of a name and a server.
func kubeconfigText(token string, pairs ...string) string {
	text := "apiVersion: v1\nkind: Config\ncurrent-context: " + pairs[0] + "\nusers:\n- name: user\n  user: {token: " + token + "}\n"
	clusters := "clusters:\n"
	contexts := "contexts:\n"
	for i := 0; i < len(pairs); i += 2 {
		clusters += fmt.Sprintf("- name: %s\n  cluster: {server: 'https://%s'}\n", pairs[i], pairs[i+1])
		contexts += fmt.Sprintf("- name: %s\n  context: {cluster: %s, user: user}\n", pairs[i], pairs[i])
	}
	return text + clusters + contexts
}

// opened returns a fleet that records the configurations of its clusters instead of connecting to them.
func opened(t *testing.T, sources ...fleet.Source) (f *fleet.Fleet, open func() map[string]string) {
	t.Helper()
	f = fleet.New(&fleet.Options{
		Sources: sources, Logger: slog.New(slog.DiscardHandler),
		Open: func(_ string, cfg *transport.Config) (*transport.Conn, error) {
			return nil, fmt.Errorf("%s with %s", cfg.Server, cfg.Token.Reveal())
		},
	})
	run(t, f.Run)
	return f, func() map[string]string {
		all := map[string]string{}
		for _, name := range f.Names() {
			_, err := f.Client(name)
			all[name] = errors.Unwrap(err).Error()
		}
		return all
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestFolder_FollowsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "east.yaml"), kubeconfigText("one", "admin", "east"))
		write(t, filepath.Join(dir, "broken.conf"), "a: b: c")
		write(t, filepath.Join(dir, ".hidden"), "")
		require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
		f, open := opened(t, fleet.Folder(dir))
		synctest.Wait()
		require.NoError(t, f.Health())
		found := open()
		assert.Contains(t, found["broken"], "broken.conf")
		delete(found, "broken")
		assert.Equal(t, map[string]string{"east": "https://east with one"}, found)

		write(t, filepath.Join(dir, "east.yaml"), kubeconfigText("two", "admin", "east"))
		require.NoError(t, os.Remove(filepath.Join(dir, "broken.conf")))
		write(t, filepath.Join(dir, "west"), kubeconfigText("one", "admin", "west"))
		time.Sleep(6 * time.Second)
		assert.Equal(t, map[string]string{"east": "https://east with two", "west": "https://west with one"}, open())

		write(t, filepath.Join(dir, "west.yml"), kubeconfigText("one", "admin", "west"))
		time.Sleep(6 * time.Second)
		require.ErrorContains(t, f.Health(), "name the same cluster (rename one)")
		assert.Len(t, open(), 2, "the clusters stay")
		require.NoError(t, os.Remove(filepath.Join(dir, "west.yml")))
		require.NoError(t, os.Remove(filepath.Join(dir, "east.yaml")))
		time.Sleep(3 * time.Minute)
		require.NoError(t, f.Health())
		assert.Equal(t, map[string]string{"west": "https://west with one"}, open())
	})
}

func TestFolder_UnreadableFileKeepsCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "east.yaml")
		write(t, path, kubeconfigText("one", "admin", "east"))
		f, open := opened(t, fleet.Folder(filepath.Dir(path)))
		synctest.Wait()
		assert.Equal(t, map[string]string{"east": "https://east with one"}, open())

		require.NoError(t, os.Remove(path))
		require.NoError(t, os.Symlink(path, path))
		time.Sleep(6 * time.Second)
		require.NoError(t, f.Health())
		found := open()
		require.Contains(t, found, "east", "it fails with the reason")
		assert.Contains(t, found["east"], path)

		require.NoError(t, os.Remove(path))
		write(t, path, kubeconfigText("one", "admin", "east"))
		time.Sleep(6 * time.Second)
		assert.Equal(t, map[string]string{"east": "https://east with one"}, open())
	})
}

func TestContexts_FollowsKubeconfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "config")
		write(t, path, kubeconfigText("one", "east", "a", "west", "b"))
		f, open := opened(t, fleet.Contexts(path))
		synctest.Wait()
		assert.Equal(t, map[string]string{"east": "https://a with one", "west": "https://b with one"}, open())
		write(t, path, kubeconfigText("two", "east", "a", "north", "c"))
		time.Sleep(6 * time.Second)
		assert.Equal(t, map[string]string{"east": "https://a with two", "north": "https://c with two"}, open())
		require.NoError(t, os.Remove(path))
		time.Sleep(6 * time.Second)
		require.ErrorContains(t, f.Health(), "a source of clusters fails: ")
		assert.Len(t, open(), 2)
	})
}

// TestSource_LoadsMissingFilesAgain has kubeconfigs of two clusters, and a certificate authority of one of them that is written later.
func TestSource_LoadsMissingFilesAgain(t *testing.T) {
	for name, sourceOf := range map[string]func(t *testing.T, east, west string) fleet.Source{
		"Folder": func(t *testing.T, east, west string) fleet.Source {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "east"), east)
			write(t, filepath.Join(dir, "west"), west)
			return fleet.Folder(dir)
		},
		"Contexts": func(t *testing.T, east, _ string) fleet.Source {
			path := filepath.Join(t.TempDir(), "config")
			write(t, path, east)
			return fleet.Contexts(path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				authority := filepath.Join(t.TempDir(), "ca.crt")
				east := strings.Replace(kubeconfigText("one", "east", "a", "west", "b"), "'https://a'", "'https://a', certificate-authority: "+authority, 1)
				f, open := opened(t, sourceOf(t, east, kubeconfigText("one", "west", "b")))
				synctest.Wait()
				assert.Contains(t, open()["east"], authority)
				time.Sleep(time.Minute)
				assert.Contains(t, open()["east"], authority)
				assert.Equal(t, "https://b with one", open()["west"])
				require.NoError(t, f.Health())
				write(t, authority, "certificate")
				time.Sleep(6 * time.Second)
				assert.Equal(t, map[string]string{"east": "https://a with one", "west": "https://b with one"}, open())
			})
		})
	}
}

// secretJSON returns a Secret with a kubeconfig.
func secretJSON(name, cluster, kubeconfig string, version int) string {
	return fmt.Sprintf(`{"kind":"Secret","apiVersion":"v1","type":"cluster.x-k8s.io/secret","metadata":{"namespace":"fleet","name":%q,"uid":%q,"resourceVersion":"%d",`+
		`"labels":{"cluster.x-k8s.io/cluster-name":%q}},"data":{"value":%q}}`, name, name, version, cluster, base64.StdEncoding.EncodeToString([]byte(kubeconfig)))
}

// secretServer returns a server of Secrets and a handle on them.
func secretServer(t *testing.T, events <-chan string) (*scripted.Server, *dynamic.Resource) {
	t.Helper()
	server := scripted.New("/v1 secrets secret Secret")
	server.Handle("WATCH /api/v1/namespaces/fleet/secrets", scripted.WatchChannel(events))
	client := dynamic.New(scripted.Connect(t, server, nil), nil)
	secrets, err := client.Resource(t.Context(), "secrets")
	require.NoError(t, err)
	return server, secrets.Namespace("fleet")
}

func TestClusterAPI_FollowsSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan string)
		server, secrets := secretServer(t, events)
		f, open := opened(t, fleet.ClusterAPI(secrets))
		require.Error(t, f.Health())
		events <- scripted.Event("ADDED", secretJSON("east-kubeconfig", "east", kubeconfigText("one", "admin", "east"), 1))
		events <- scripted.Event("ADDED", secretJSON("east-ca", "east", "certificate", 2))
		events <- scripted.InitialEventsEnd("v1", "Secret", "100")
		synctest.Wait()
		require.NoError(t, f.Health())
		assert.Equal(t, map[string]string{"fleet/east": "https://east with one"}, open())
		assert.Contains(t, server.Requests()[0].URI, "fieldSelector=type%3Dcluster.x-k8s.io%2Fsecret")
		assert.Contains(t, server.Requests()[0].URI, "labelSelector=cluster.x-k8s.io%2Fcluster-name")
		events <- scripted.Event("ADDED", secretJSON("west-kubeconfig", "west", kubeconfigText("one", "admin", "west"), 101))
		events <- scripted.Event("MODIFIED", secretJSON("east-kubeconfig", "east", kubeconfigText("two", "admin", "east"), 102))
		synctest.Wait()
		assert.Equal(t, map[string]string{"fleet/east": "https://east with two", "fleet/west": "https://west with one"}, open())
		events <- scripted.Event("DELETED", secretJSON("east-kubeconfig", "east", kubeconfigText("two", "admin", "east"), 103))
		synctest.Wait()
		assert.Equal(t, map[string]string{"fleet/west": "https://west with one"}, open())
	})
}

func TestSecrets_RejectsProgramsAndFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan string)
		_, secrets := secretServer(t, events)
		_, open := opened(t, fleet.Secrets(secrets, "fleet=blue", ""))
		plain := kubeconfigText("one", "admin", "east")
		for i, user := range []string{
			"{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true, interactiveMode: Never}}", "{tokenFile: /etc/token}",
			"{client-certificate: /a, client-key: /b}", "{auth-provider: {name: oidc, config: {}}}",
		} {
			text := strings.Replace(plain, "{token: one}", user, 1)
			events <- scripted.Event("ADDED", secretJSON(fmt.Sprint("s", i), "x", text, i+1))
		}
		events <- scripted.Event("ADDED", `{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"fleet","name":"empty","uid":"e","resourceVersion":"9"}}`)
		events <- scripted.Event("ADDED", secretJSON("plain", "x", plain, 10))
		events <- scripted.InitialEventsEnd("v1", "Secret", "100")
		synctest.Wait()
		found := open()
		assert.Equal(t, "https://east with one", found["fleet/plain"])
		assert.Contains(t, found["fleet/empty"], `kubeconfig of Secret fleet/empty: no data["value"]`)
		for i := range 4 {
			assert.Contains(t, found[fmt.Sprint("fleet/s", i)], fmt.Sprintf("kubeconfig of Secret fleet/s%d: ", i))
			assert.Regexp(t, "names a program|names a file|has an auth-provider", found[fmt.Sprint("fleet/s", i)])
		}
	})
}

func TestSecrets_RetriesAfterRejection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan string)
		server, secrets := secretServer(t, events)
		server.Handle("WATCH /api/v1/namespaces/fleet/secrets", scripted.Status(http.StatusForbidden, "Forbidden"))
		server.Handle("GET /api/v1/namespaces/fleet/secrets", scripted.Status(http.StatusForbidden, "Forbidden"))
		f, open := opened(t, fleet.Secrets(secrets, "", "value"))
		time.Sleep(10 * time.Second)
		require.ErrorContains(t, f.Health(), "a source of clusters fails: read kubeconfigs of Secrets: ")
		server.Handle("WATCH /api/v1/namespaces/fleet/secrets", scripted.WatchChannel(events))
		events <- scripted.Event("ADDED", secretJSON("a", "x", kubeconfigText("one", "admin", "east"), 1))
		events <- scripted.InitialEventsEnd("v1", "Secret", "100")
		synctest.Wait()
		require.NoError(t, f.Health())
		assert.Len(t, open(), 1)
	})
}

func TestSource_FailureKeepsClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		f, open := opened(t, func(_ context.Context, clusters *fleet.Clusters) error {
			calls++
			switch calls {
			case 1:
				clusters.Set("a", &transport.Config{Server: "https://a"})
				clusters.Set("b", &transport.Config{Server: "https://b"})
				clusters.Synced()
				return errors.New("inventory gone")
			case 2:
				panic("defect")
			default:
				clusters.Set("b", &transport.Config{Server: "https://b"})
				return nil
			}
		})
		synctest.Wait()
		require.ErrorContains(t, f.Health(), "a source of clusters fails: inventory gone")
		assert.Len(t, open(), 2)
		time.Sleep(2 * time.Second)
		require.ErrorContains(t, f.Health(), "panic in a source of clusters")
		assert.Len(t, open(), 2)
		time.Sleep(time.Minute)
		require.NoError(t, f.Health())
		assert.Equal(t, map[string]string{"b": "https://b with "}, open())
		assert.Equal(t, 3, calls)
		require.EqualError(t, f.Run(t.Context()), "run a fleet: it runs already")
	})
}

func TestClusters_SharedName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, firstMembers := dynamicSource()
		second, secondMembers := dynamicSource()
		third, thirdMembers := dynamicSource()
		f, open := opened(t, first, second, third)
		a := firstMembers()
		b := secondMembers()
		c := thirdMembers()
		assertServer := func(want string) {
			t.Helper()
			assert.Equal(t, map[string]string{"prod": want}, open())
		}
		a.Set("prod", &transport.Config{Server: "https://a"})
		c.SetError("prod", errors.New("no such file"))
		b.Set("prod", &transport.Config{Server: "https://b"})
		assertServer("https://b with ")
		b.Remove("prod")
		assertServer("no such file")
		b.Remove("prod")
		wrap := func(next http.RoundTripper) http.RoundTripper { return next }
		b.Set("prod", &transport.Config{Server: "https://b", Options: transport.Options{WrapTransport: wrap}})
		_, before := f.Client("prod")
		c.Remove("prod")
		_, after := f.Client("prod")
		assert.Same(t, before, after, "the configuration in use is not set again")
		assertServer("https://b with ")
		b.Remove("prod")
		assertServer("https://a with ")
		a.Set("prod", &transport.Config{Server: "https://a2"})
		assertServer("https://a2 with ")
		a.Set("prod", nil)
		assertServer("no configuration")
		a.Remove("prod")
		assert.Empty(t, f.Names())
	})
}

func TestSource_LongCallResetsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 10
		var calls []time.Time
		_, _ = opened(t, func(ctx context.Context, clusters *fleet.Clusters) error {
			calls = append(calls, time.Now())
			clusters.Synced()
			if len(calls) == failures+1 {
				time.Sleep(2 * time.Hour)
			}
			if len(calls) > failures+1 {
				<-ctx.Done()
			}
			return errors.New("inventory gone")
		})
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		require.Len(t, calls, failures+2)
		assert.GreaterOrEqual(t, calls[failures].Sub(calls[failures-1]), time.Minute)
		assert.Less(t, calls[failures+1].Sub(calls[failures]), 2*time.Hour+2*time.Second)
	})
}
