package discovery

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/scripted"
)

func TestOptions_CacheDirIsReadAndUpdated(t *testing.T) {
	dir := t.TempDir()
	script, client := serving(t, deployments)
	first := New(client.conn, &Options{CacheDir: dir})
	_, err := first.Snapshot(t.Context())
	require.NoError(t, err)
	asked := script.Count()

	second := New(client.conn, &Options{CacheDir: dir})
	cached, err := second.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Equal(t, asked, script.Count(), "nobody was asked")
	assert.Len(t, cached.Groups, 2)

	script.serve(deployments + jobs)
	fresh := refresh(t, second)
	assert.Len(t, fresh.Groups, 3)
	third, err := New(client.conn, &Options{CacheDir: dir}).Snapshot(t.Context())
	require.NoError(t, err)
	assert.Len(t, third.Groups, 3)
}

func TestOptions_CacheDirIsWrittenOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := newServer()
		client := New(scripted.Connect(t, script, nil), &Options{CacheDir: t.TempDir()})
		refresh(t, client)
		file := filepath.Join(client.disk.dir, groupsFile)
		require.NoError(t, os.Remove(file))
		refresh(t, client)
		assert.NoFileExists(t, file, "nothing has changed")
		time.Sleep(time.Hour)
		refresh(t, client)
		assert.FileExists(t, file, "its files expire")
		require.NoError(t, os.Remove(file))
		script.serve(daemonSets)
		refresh(t, client)
		assert.FileExists(t, file)
	})
}

func TestOptions_UnusableCacheDirIsIgnored(t *testing.T) {
	_, client := serving(t, deployments)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, (&Snapshot{}).Save(file)) // where a folder should be
	snapshot, err := New(client.conn, &Options{CacheDir: file}).Snapshot(t.Context())
	require.NoError(t, err)
	assert.Len(t, snapshot.Groups, 2)
}

func TestOptions_SavedSnapshotOfflineAndFirst(t *testing.T) {
	script, client := serving(t, deployments)
	path := filepath.Join(t.TempDir(), "snapshot.json")
	require.NoError(t, refresh(t, client).Save(path))
	saved, err := Load(path)
	require.NoError(t, err)

	offline := NewOffline(saved)
	assert.Same(t, saved, refresh(t, offline))
	latest, err := offline.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Same(t, saved, latest)
	_, err = offline.ServerVersion(t.Context())
	require.ErrorIs(t, err, errOffline)
	require.ErrorIs(t, offline.Run(t.Context()), errOffline)

	pinned := New(client.conn, &Options{Snapshot: saved})
	latest, err = pinned.Snapshot(context.Background())
	require.NoError(t, err)
	assert.Same(t, saved, latest)
	script.serve(jobs)
	after := refresh(t, pinned)
	assert.Equal(t, "batch", after.Groups[1].Name)
	require.Len(t, after.Removed, 1)
	assert.Equal(t, "deployments", after.Removed[0].Resource.GVR.Resource)
}
