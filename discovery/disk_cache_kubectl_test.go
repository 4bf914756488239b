package discovery

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

// kubectlOfSandbox runs kubectl with a cache of its own.
func kubectlOfSandbox(t *testing.T, cacheDir string) func(stdin string, args ...string) string {
	t.Helper()
	kubeconfig := cluster.Kubeconfig(t)
	path := cluster.Kubectl(t)
	return func(stdin string, args ...string) string {
		t.Helper()
		kubectl := exec.CommandContext(t.Context(), path, append([]string{"--kubeconfig", kubeconfig, "--cache-dir", cacheDir}, args...)...)
		kubectl.Stdin = strings.NewReader(stdin)
		output, err := kubectl.CombinedOutput()
		require.NoError(t, err, string(output))
		return string(output)
	}
}

// snapshotOfSandbox returns the sandbox's current discovery as kubectl caches it.
func snapshotOfSandbox(t *testing.T) (server string, groups []Group) {
	t.Helper()
	client := clientOfSandbox(t)
	snapshot, err := client.Refresh(t.Context())
	require.NoError(t, err)
	for _, group := range snapshot.Groups {
		group.Versions = slices.DeleteFunc(slices.Clone(group.Versions), func(v Version) bool { return v.Stale })
		if len(group.Versions) > 0 {
			groups = append(groups, group)
		}
	}
	return client.conn.Server(), groups
}

func clientOfSandbox(t *testing.T) *Client {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return New(conn, nil)
}

const (
	diskGroup   = "disk.example.com"
	diskObjects = `
{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "dials.disk.example.com"}, "spec": {
  "group": "disk.example.com", "scope": "Namespaced",
  "names": {"plural": "dials", "singular": "dial", "kind": "Dial", "shortNames": ["dl"], "categories": ["all", "shop"]},
  "versions": [{"name": "v1", "served": true, "storage": true,
    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}}]}}
{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.stale.disk.example.com"}, "spec": {
  "group": "stale.disk.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
  "insecureSkipTLSVerify": true, "service": {"name": "nobody", "namespace": "default"}}}
`
)

// withDialsAndAStaleGroup adds a custom resource, and a group whose server is not there.
func withDialsAndAStaleGroup(t *testing.T) {
	t.Helper()
	kubectl := kubectlOfSandbox(t, t.TempDir())
	client := clientOfSandbox(t)
	awaitDials(t.Context(), t, client, false)
	t.Cleanup(func() {
		deleting := exec.Command(cluster.Kubectl(t), "--kubeconfig", cluster.Kubeconfig(t), "--cache-dir", t.TempDir(), "delete", "--ignore-not-found", "-f", "-")
		deleting.Stdin = strings.NewReader(diskObjects)
		output, err := deleting.CombinedOutput()
		assert.NoError(t, err, string(output))
		awaitDials(context.WithoutCancel(t.Context()), t, client, false)
	})
	kubectl(diskObjects, "apply", "-f", "-")
	awaitDials(t.Context(), t, client, true)
}

// awaitDials waits until discovery has both kinds or, unless served, neither.
func awaitDials(ctx context.Context, t *testing.T, client *Client, served bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		snapshot, err := client.Refresh(ctx)
		if err != nil {
			return false
		}
		dials := false
		stale := false
		for _, group := range snapshot.Groups {
			dials = dials || group.Name == diskGroup && group.Versions[0].Healthy() && len(group.Versions[0].Resources) > 0
			stale = stale || group.Name == "stale."+diskGroup && group.Versions[0].Stale
		}
		return dials == served && stale == served
	}, 30*time.Second, 50*time.Millisecond)
}

func TestDiskCache_ReadsKubectlsFiles(t *testing.T) {
	withDialsAndAStaleGroup(t)
	dir := t.TempDir()
	kubectl := kubectlOfSandbox(t, dir)
	kubectl("", "api-resources")
	server, groups := snapshotOfSandbox(t)
	snapshot, err := newDiskCache(dir, server).read(time.Now())
	require.NoError(t, err)
	assert.Equal(t, groups, snapshot.Groups)
	assert.WithinDuration(t, time.Now(), snapshot.TakenAt, time.Minute)
}

func TestDiskCache_KubectlReadsItsFiles(t *testing.T) {
	withDialsAndAStaleGroup(t)
	live := kubectlOfSandbox(t, t.TempDir())("", "api-resources", "-o", "wide")
	_, groups := snapshotOfSandbox(t)
	const nobody = "https://127.0.0.1:1" // refuses connections
	dir := t.TempDir()
	require.NoError(t, newDiskCache(dir, nobody).write(&Snapshot{Groups: groups}, time.Now()))
	offline := kubectlOfSandbox(t, dir)
	assert.Equal(t, live, offline("", "--server", nobody, "api-resources", "--cached", "-o", "wide"))
	const objects = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"}}
		{"apiVersion":"disk.example.com/v1","kind":"Dial","metadata":{"name":"volume"}}`
	assert.Equal(t, "deployment.apps/web\ndial.disk.example.com/volume\n", offline(objects,
		"--server", nobody, "create", "--dry-run=client", "--validate=false", "-o", "name", "-f", "-"))
}

// TestDiskCache_FilesEqualKubectls compares the two caches file by file.
func TestDiskCache_FilesEqualKubectls(t *testing.T) {
	withDialsAndAStaleGroup(t)
	theirs := t.TempDir()
	ours := t.TempDir()
	kubectlOfSandbox(t, theirs)("", "api-resources")
	snapshot, err := clientOfSandbox(t).Snapshot(t.Context())
	require.NoError(t, err)
	server, _ := snapshotOfSandbox(t)
	require.NoError(t, newDiskCache(ours, server).write(snapshot, time.Now()))
	compareFolders(t, filepath.Join(theirs, "discovery"), filepath.Join(ours, "discovery"))
}

func TestDiskCache_RepairsAndIsRepairedByKubectl(t *testing.T) {
	dir := t.TempDir()
	kubectl := kubectlOfSandbox(t, dir)
	kubectl("", "api-resources")
	server, groups := snapshotOfSandbox(t)
	cache := newDiskCache(dir, server)
	damageCache(t, cache)
	_, err := cache.read(time.Now())
	require.Error(t, err)
	kubectl("", "api-resources")
	snapshot, err := cache.read(time.Now())
	require.NoError(t, err)
	assert.Equal(t, groups, snapshot.Groups)

	damageCache(t, cache)
	require.NoError(t, cache.write(snapshot, time.Now()))
	again, err := cache.read(time.Now())
	require.NoError(t, err)
	assert.Equal(t, groups, again.Groups)
}

func damageCache(t *testing.T, cache *diskCache) {
	t.Helper()
	for _, path := range []string{groupsFile, "apps/v1/" + resourcesFile} {
		path = filepath.Join(cache.dir, path)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text[:len(text)/2], 0o600))
	}
}

// compareFolders compares files' names, modes and texts.
func compareFolders(t *testing.T, want, got string) {
	t.Helper()
	files := map[string][2]string{}
	for i, dir := range []string{want, got} {
		for _, path := range diskFiles(t, dir) {
			name, err := filepath.Rel(dir, path)
			require.NoError(t, err)
			info, err := os.Stat(path)
			require.NoError(t, err)
			both := files[name]
			both[i] = info.Mode().String() + " " + cachedDocument(t, path)
			files[name] = both
		}
	}
	require.NotEmpty(t, files)
	for name, both := range files {
		if filepath.Base(name) != noResourcesFile {
			assert.Equal(t, both[0], both[1], name)
		}
	}
}

// cachedDocument is a file's text, without the group and version that some servers spell out of a kind that stands in them.
func cachedDocument(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var list metav1.APIResourceList
	if filepath.Base(path) != resourcesFile {
		return string(text)
	}
	require.NoError(t, json.Unmarshal(text, &list))
	for i := range list.APIResources {
		entry := &list.APIResources[i]
		if (schema.GroupVersion{Group: entry.Group, Version: entry.Version}).String() == list.GroupVersion {
			entry.Group = ""
			entry.Version = ""
		}
	}
	text, err = json.Marshal(&list)
	require.NoError(t, err)
	return string(text)
}
