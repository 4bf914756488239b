package discovery

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDiskCache_DamagedIsIgnoredAndReplaced(t *testing.T) {
	const apps = "apps/v1/" + resourcesFile
	for name, tc := range map[string]struct {
		file, text string
	}{
		"nothing for groups":           {groupsFile, ""},
		"no groups":                    {groupsFile, `{"kind":"APIGroupList","groups":[]}`},
		"half the groups":              {groupsFile, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"na`},
		"groups that are a page":       {groupsFile, "<html>"},
		"groups of another kind":       {groupsFile, `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`},
		"groups of another shape":      {groupsFile, `{"kind":"APIGroupList","groups":{}}`},
		"groups and more":              {groupsFile, `{"kind":"APIGroupList","groups":[]}{}`},
		"a group twice":                {groupsFile, `{"kind":"APIGroupList","groups":[{"name":"","versions":[{"version":"v1"}]},{"name":"","versions":[{"version":"v1"}]}]}`},
		"a version twice":              {groupsFile, `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"version":"v1"},{"version":"v1"}]}]}`},
		"a version without a name":     {groupsFile, `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{}]}]}`},
		"a group that leads elsewhere": {groupsFile, `{"kind":"APIGroupList","groups":[{"name":"../10.0.0.1_6443/apps","versions":[{"version":"v1"}]}]}`},
		"no resources":                 {apps, ""},
		"half the resources":           {apps, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"depl`},
		"zeros":                        {apps, strings.Repeat("\x00", 4096)},
		"resources of another version": {apps, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v2","resources":[{"name":"a","kind":"A"}]}`},
		"resources of another kind":    {apps, `{"kind":"Status","apiVersion":"v1","groupVersion":"apps/v1"}`},
		"resources of another shape":   {apps, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":"none"}`},
		"a resource without a name":    {apps, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"kind":"A"}]}`},
		"null for a resource":          {apps, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[null]}`},
	} {
		t.Run(name, func(t *testing.T) {
			cache := diskWritten(t)
			require.NoError(t, os.WriteFile(filepath.Join(cache.dir, tc.file), []byte(tc.text), 0o660))
			snapshot, err := cache.read(time.Now())
			require.Error(t, err)
			require.Nil(t, snapshot)

			require.NoError(t, cache.write(diskSample(), time.Now()))
			snapshot, err = cache.read(time.Now())
			require.NoError(t, err)
			assert.Equal(t, diskSample().Groups, snapshot.Groups)
		})
	}
}

func TestDiskCache_MissingFileIsAnError(t *testing.T) {
	for _, path := range []string{".", groupsFile, "v1", "apps/v1/" + resourcesFile, "external.metrics.k8s.io/v1beta1/" + noResourcesFile} {
		cache := diskWritten(t)
		require.NoError(t, os.RemoveAll(filepath.Join(cache.dir, path)))
		_, err := cache.read(time.Now())
		require.ErrorIs(t, err, fs.ErrNotExist, path)
	}
}

func TestDiskCache_FolderForFileIsAnError(t *testing.T) {
	for _, path := range []string{groupsFile, "apps/v1/" + resourcesFile} {
		cache := diskWritten(t)
		require.NoError(t, os.Remove(filepath.Join(cache.dir, path)))
		require.NoError(t, os.Mkdir(filepath.Join(cache.dir, path), 0o750))
		_, err := cache.read(time.Now())
		require.ErrorContains(t, err, "not a regular file", path)
		files := diskFiles(t, cache.dir)
		require.Error(t, cache.write(diskSample(), time.Now()), path)
		assert.Equal(t, files, diskFiles(t, cache.dir), "nothing half-written stays behind")
	}
}

// blockedFolders are folders that cannot be written to.
func blockedFolders(t *testing.T) map[string]string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "read-only"), 0o500))
	folders := map[string]string{"a file": filepath.Join(dir, "file")}
	if os.Geteuid() > 0 {
		folders["read-only"] = filepath.Join(dir, "read-only")
	}
	if runtime.GOOS == "linux" {
		folders["not the kernel's"] = "/proc/self" // not even for the superuser
	}
	return folders
}

func TestDiskCache_UnwritableFolderIsAnError(t *testing.T) {
	for name, dir := range blockedFolders(t) {
		cache := newDiskCache(dir, diskServer)
		require.Error(t, cache.write(diskSample(), time.Now()), name)
		snapshot, err := cache.read(time.Now())
		require.Error(t, err, name)
		require.Nil(t, snapshot)
	}
}

func FuzzDiskCache(f *testing.F) {
	sample := diskWritten(f)
	groups, err := os.ReadFile(filepath.Join(sample.dir, groupsFile))
	require.NoError(f, err)
	resources, err := os.ReadFile(filepath.Join(sample.dir, "v1", resourcesFile))
	require.NoError(f, err)
	f.Add(groups, resources)
	f.Add([]byte(`{"kind":"APIGroupList","groups":[{"name":"","versions":[{"version":"v1"}]}]}`), resources)
	f.Add([]byte(`{"kind":"APIGroupList","groups":[{"name":"","versions":[{"version":"v1"}]},{"name":"x"}]}`),
		[]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"a/b"},{"name":"a","kind":"A","group":"g"},{"name":"/"}]}`))
	cache := newDiskCache(f.TempDir(), diskServer)
	require.NoError(f, os.MkdirAll(filepath.Join(cache.dir, "v1"), 0o750))
	f.Fuzz(func(t *testing.T, groups, resources []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(cache.dir, groupsFile), groups, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(cache.dir, "v1", resourcesFile), resources, 0o600))
		snapshot, err := cache.read(time.Now())
		require.Equal(t, err == nil, snapshot != nil)
		if err != nil {
			return
		}
		again := func(s *Snapshot) *Snapshot {
			copied := newDiskCache(t.TempDir(), diskServer)
			if len(s.Groups) == 0 {
				return s
			}
			require.NoError(t, copied.write(s, time.Now()))
			read, err := copied.read(time.Now())
			if err != nil {
				t.Skip("it has names that JSON must escape, as none of the API has; they are read back as damage")
			}
			return read
		}
		once := again(snapshot) // which leaves out what is of no kind
		require.Equal(t, once.Groups, again(once).Groups)
	})
}
