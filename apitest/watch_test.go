package apitest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/apitest"
)

func patchLabel(t testing.TB, server *apitest.Server, name, label string) {
	t.Helper()
	r := do(t, server, "PATCH", configMapsPath+"/"+name, `{"metadata":{"labels":{"name":"`+label+`"}}}`, "Content-Type: application/merge-patch+json")
	assert.Equal(t, 200, r.code, r.text)
}

func TestServer_WatchBySelector(t *testing.T) {
	eachConnection(t, func(t *testing.T, opts apitest.Options) {
		server := apitest.NewServer(t, &opts)
		createConfigMaps(t, server, "a", "b")
		next, stop := watchLines(t, server, configMapsPath+"?watch=1&labelSelector=name%3Db")
		defer stop()
		assert.Equal(t, "ADDED b", next())
		patchLabel(t, server, "a", "b")
		assert.Equal(t, "ADDED a", next(), "enters the selection")
		patchLabel(t, server, "b", "c")
		assert.Equal(t, "DELETED b", next(), "leaves the selection")
		do(t, server, "DELETE", configMapsPath+"/b", "")
		do(t, server, "DELETE", configMapsPath+"/a", "")
		assert.Equal(t, "DELETED a", next())
	})
}

func TestServer_WatchFromVersionAndAfterCompaction(t *testing.T) {
	server := apitest.NewServer(t, nil)
	createConfigMaps(t, server, "a")
	version := fmt.Sprint(do(t, server, "GET", configMapsPath, "").metadata()["resourceVersion"])
	createConfigMaps(t, server, "b")
	next, stop := watchLines(t, server, configMapsPath+"?watch=1&resourceVersion="+version)
	defer stop()
	assert.Equal(t, "ADDED b", next())
	server.Compact()
	createConfigMaps(t, server, "c")
	assert.Equal(t, "ADDED c", next(), "running watches go on")
	expired, stopExpired := watchLines(t, server, configMapsPath+"?watch=1&resourceVersion="+version)
	defer stopExpired()
	assert.Equal(t, "ERROR 410", expired())
	assert.Equal(t, "end", expired())
}

func TestServer_WatchListBookmarksAndTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(t, &apitest.Options{InMemory: true})
		createConfigMaps(t, server, "a", "b")
		start := time.Now()
		next, stop := watchLines(t, server, configMapsPath+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=90")
		defer stop()
		for _, want := range []string{"ADDED a", "ADDED b", "BOOKMARK initial", "BOOKMARK"} {
			assert.Equal(t, want, next())
		}
		assert.Equal(t, time.Minute, time.Since(start))
		assert.Equal(t, "BOOKMARK", next(), "shortly before the end")
		assert.Equal(t, "end", next())
		assert.Equal(t, 90*time.Second, time.Since(start))
	})
}

func TestServer_WatchAsTable(t *testing.T) {
	server := apitest.NewServer(t, nil)
	createConfigMaps(t, server, "a")
	r := do(t, server, "GET", configMapsPath+"?watch=1&timeoutSeconds=1", "", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io")
	assert.Contains(t, r.text, `"kind":"Table"`)
	assert.Contains(t, r.text, `"columnDefinitions":[{`)
}
