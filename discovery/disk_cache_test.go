package discovery

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const diskServer = "https://10.0.0.1:6443"

// diskSample has one of allGroups that a server may tell, in an order that is not the alphabet's.
func diskSample() *Snapshot {
	core := schema.GroupVersion{Version: "v1"}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	crd := schema.GroupVersion{Group: "example.org", Version: "v2"}
	older := schema.GroupVersion{Group: "example.org", Version: "v1"}
	return &Snapshot{TakenAt: time.Now(), Groups: []Group{
		{Name: "", Versions: []Version{{Name: "v1", Resources: []*Resource{
			{
				GVR: core.WithResource("pods"), GVK: core.WithKind("Pod"), Singular: "pod", ShortNames: []string{"po"},
				Categories: []string{"all"}, Namespaced: true, Verbs: []string{"list", "get"}, StorageVersionHash: "xPOwRZ+Yhw8=",
				Subresources: []Subresource{
					{Name: "exec", GVK: core.WithKind("PodExecOptions"), Verbs: []string{"create", "get"}},
					{Name: "eviction", GVK: schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}, Verbs: []string{"create"}},
					{Name: "kindless", Verbs: []string{"get"}},
				},
			},
			{GVR: core.WithResource("nodes"), GVK: core.WithKind("Node"), Singular: "node", Verbs: []string{"get"}},
			{GVR: core.WithResource("ghosts"), Subresources: []Subresource{{Name: "scale", GVK: schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, Verbs: []string{"get"}}}},
		}}}},
		{Name: "example.org", Versions: []Version{
			{Name: "v2", Resources: []*Resource{{GVR: crd.WithResource("widgets"), GVK: crd.WithKind("Widget"), Namespaced: true, Verbs: []string{}}}},
			{Name: "v1", Resources: []*Resource{{GVR: older.WithResource("widgets"), GVK: crd.WithKind("Widget"), Verbs: []string{"get"}}}},
		}},
		{Name: "apps", Versions: []Version{{Name: "v1", Resources: []*Resource{{GVR: apps.WithResource("deployments"), GVK: apps.WithKind("Deployment"), Verbs: []string{"get"}}}}}},
		{Name: "external.metrics.k8s.io", Versions: []Version{{Name: "v1beta1"}}},
	}}
}

// diskWritten is a cache that holds the sample.
func diskWritten(t testing.TB) *diskCache {
	t.Helper()
	cache := newDiskCache(t.TempDir(), diskServer)
	require.NoError(t, cache.write(diskSample(), time.Now()))
	return cache
}

func TestNewDiskCache_UsesKubectlsFolder(t *testing.T) {
	for server, folder := range map[string]string{
		"https://10.0.0.1:6443":                 "10.0.0.1_6443",
		"http://localhost:8080":                 "localhost_8080",
		"https://[::1]:6443":                    "___1__6443",
		"https://rancher.example/k8s/c-1":       "rancher.example/k8s/c_1",
		"https://kube.example:443/a(b)/%C3%BC~": "kube.example_443/a(b)/_C3_BC_",
		"localhost:8080":                        "localhost_8080",
	} {
		assert.Equal(t, filepath.Join("cache", "discovery", filepath.FromSlash(folder)), newDiskCache("cache", server).dir, server)
	}
}

func TestDiskCache_StaysInItsFolder(t *testing.T) {
	for _, server := range []string{"", "https://", "https://..", "https://../../etc", "https://a/../../b", "/etc"} {
		require.Nil(t, newDiskCache(t.TempDir(), server), server)
	}
	for _, gv := range []schema.GroupVersion{
		{Group: "..", Version: "v1"}, {Group: "../..", Version: "v1"}, {Group: "a/b", Version: "v1"}, {Group: `a\b`, Version: "v1"},
		{Group: ".", Version: "v1"}, {Group: "/etc", Version: "v1"}, {Version: ".."}, {Version: ""}, {Group: "apps"}, {Group: "apps", Version: "."},
	} {
		parent := t.TempDir()
		cache := newDiskCache(filepath.Join(parent, "cache"), diskServer)
		err := cache.write(&Snapshot{Groups: []Group{{Name: gv.Group, Versions: []Version{{Name: gv.Version}}}}}, time.Now())
		require.ErrorContains(t, err, "not a folder name", "%v", gv)
		assert.Empty(t, diskFiles(t, parent))
	}
}

func TestDefaultCacheDir_IsKubectls(t *testing.T) {
	t.Setenv("KUBECACHEDIR", "/elsewhere")
	dir, err := DefaultCacheDir()
	require.NoError(t, err)
	assert.Equal(t, "/elsewhere", dir)

	home := t.TempDir()
	t.Setenv("KUBECACHEDIR", "")
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	dir, err = DefaultCacheDir()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(home, ".kube", "cache"), dir)

	t.Setenv("HOME", "")
	t.Setenv("USERPROFILE", "")
	_, err = DefaultCacheDir()
	require.ErrorContains(t, err, "set KUBECACHEDIR")
}

func TestDiskCache_RoundTrip(t *testing.T) {
	cache := newDiskCache(t.TempDir(), diskServer)
	asked := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, cache.write(diskSample(), asked))
	snapshot, err := cache.read(time.Now())
	require.NoError(t, err)
	assert.Equal(t, diskSample().Groups, snapshot.Groups)
	assert.True(t, asked.Equal(snapshot.TakenAt), "taken %s, the server was asked %s", snapshot.TakenAt, asked)
}

func TestDiskCache_OmitsWhatKubectlOmits(t *testing.T) {
	cache := newDiskCache(t.TempDir(), diskServer)
	gv := schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1"}
	nodes := []*Resource{{GVR: gv.WithResource("nodes"), GVK: gv.WithKind("NodeMetrics")}}
	sample := diskSample()
	sample.Groups[1].Versions[0].Stale = true
	sample.Groups = append(sample.Groups, Group{Name: gv.Group, Versions: []Version{{Name: gv.Version, Resources: nodes, Stale: true}}})
	sample.Groups[0].Versions[0].Resources[2].Verbs = []string{"get"} // of a resource without a kind
	require.NoError(t, cache.write(sample, time.Now()))

	snapshot, err := cache.read(time.Now())
	require.NoError(t, err)
	want := diskSample().Groups
	want[1].Versions = want[1].Versions[1:]
	assert.Equal(t, want, snapshot.Groups)
	assert.NoDirExists(t, filepath.Join(cache.dir, gv.Group))
}

func TestDiskCache_FailedVersionIsRequestedAgain(t *testing.T) {
	sample := diskSample()
	sample.Groups[2].Versions[0].Err = errors.New("503")
	cache := newDiskCache(t.TempDir(), diskServer)
	require.NoError(t, cache.write(sample, time.Now()))
	_, err := cache.read(time.Now())
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, cache.write(diskSample(), time.Now()))
	require.NoError(t, cache.write(sample, time.Now()))
	snapshot, err := cache.read(time.Now())
	require.NoError(t, err, "what was known of it is still valid")
	assert.Equal(t, diskSample().Groups, snapshot.Groups)
}

func TestDiskCache_WritesNoEmptyResourceList(t *testing.T) {
	cache := newDiskCache(t.TempDir(), diskServer)
	require.NoError(t, cache.write(&Snapshot{}, time.Now()))
	assert.NoDirExists(t, cache.dir)

	cache = diskWritten(t)
	assert.NoFileExists(t, filepath.Join(cache.dir, "external.metrics.k8s.io", "v1beta1", resourcesFile))
	sample := diskSample()
	sample.Groups[2].Versions[0].Resources, sample.Groups[3].Versions[0].Resources = nil, sample.Groups[2].Versions[0].Resources
	sample.Groups[3].Versions[0].Resources[0].GVR.Version = "v1beta1"
	sample.Groups[3].Versions[0].Resources[0].GVR.Group = "external.metrics.k8s.io"
	for range 2 { // what is empty and what is not change places
		require.NoError(t, cache.write(sample, time.Now()))
		snapshot, err := cache.read(time.Now())
		require.NoError(t, err)
		assert.Equal(t, sample.Groups, snapshot.Groups)
		assert.Len(t, diskFiles(t, cache.dir), 6)
		sample = diskSample()
	}
}

func TestDiskCache_ExpiresAfterSixHours(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	for name, tc := range map[string]struct {
		modified time.Time
		taken    time.Time // zero: not valid
	}{
		"just now":          {now, now},
		"six hours ago":     {now.Add(-6 * time.Hour), now.Add(-6 * time.Hour)},
		"longer ago":        {now.Add(-6*time.Hour - time.Second), time.Time{}},
		"by a clock ahead":  {now.Add(time.Minute), now},
		"in another decade": {now.AddDate(10, 0, 0), time.Time{}},
	} {
		for _, file := range []string{groupsFile, "v1/" + resourcesFile, "external.metrics.k8s.io/v1beta1/" + noResourcesFile} {
			cache := newDiskCache(t.TempDir(), diskServer)
			require.NoError(t, cache.write(diskSample(), now))
			require.NoError(t, os.Chtimes(filepath.Join(cache.dir, file), tc.modified, tc.modified))
			snapshot, err := cache.read(now)
			if tc.taken.IsZero() {
				require.ErrorContains(t, err, "expired", name)
				require.Nil(t, snapshot)
				continue
			}
			require.NoError(t, err, name)
			assert.True(t, tc.taken.Equal(snapshot.TakenAt), "%s: taken %s, not %s", name, snapshot.TakenAt, tc.taken)
		}
	}
}

func TestDiskCache_UnchangedFilesOnlyGetNewTime(t *testing.T) {
	cache := newDiskCache(t.TempDir(), diskServer)
	now := time.Now().Truncate(time.Second)
	path := filepath.Join(cache.dir, groupsFile)
	require.NoError(t, cache.write(diskSample(), now.Add(-7*time.Hour)))
	before, err := os.Stat(path)
	require.NoError(t, err)
	_, err = cache.read(now)
	require.ErrorContains(t, err, "expired")

	require.NoError(t, cache.write(diskSample(), now))
	after, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "the file is another")
	snapshot, err := cache.read(now)
	require.NoError(t, err)
	assert.True(t, now.Equal(snapshot.TakenAt))
}

func TestDiskCache_FilePermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	cache := diskWritten(t)
	require.NoError(t, filepath.WalkDir(cache.dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		if entry.IsDir() {
			assert.Zero(t, info.Mode().Perm()&^0o750, "%s is %s", path, info.Mode())
		} else {
			assert.Equal(t, fs.FileMode(0o660), info.Mode(), path)
		}
		return nil
	}))
}

// diskFiles lists the files below a folder.
func diskFiles(t testing.TB, dir string) []string {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	return files
}

func TestClient_ChangesOfCachedSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, newDiskCache(dir, diskServer).write(diskSample(), time.Now()))
		client := &Client{disk: newDiskCache(dir, diskServer), changed: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		count := 0
		go func() {
			for range client.Changes(ctx, nil) {
				count++
			}
		}()
		synctest.Wait() // no snapshot so far
		snapshot, err := client.Snapshot(ctx)
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, len(slices.Collect(snapshot.Resources())), count)
		cancel()
	})
}
