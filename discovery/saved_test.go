package discovery

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// savedSample has, beyond what the disk cache keeps, what is stale, failed and gone, and a resource of no kind.
func savedSample() *Snapshot {
	gone := schema.GroupVersion{Group: "gone.example", Version: "v1"}
	sample := diskSample()
	sample.Taken = time.Date(2026, 3, 1, 12, 30, 0, 123456789, time.UTC)
	sample.Aggregated = true
	sample.Groups[0].Versions[0].Resources[2].ShortNames = []string{"gh"}
	sample.Groups[1].Versions[0].Resources[0].Verbs = nil
	sample.Groups[1].Versions[0].Stale = true
	sample.Groups[2].Versions[0].Err = errors.New("get /apis/apps/v1: 503 Service Unavailable: \"<html>\"\n\tno more")
	sample.Groups = append(sample.Groups, Group{Name: "empty.example"})
	sample.Removed = []Removed{{
		Resource: &Resource{GVR: gone.WithResource("things"), GVK: gone.WithKind("Thing"), Verbs: []string{"get"}},
		Noticed:  sample.Taken.Add(-time.Hour),
	}}
	return sample
}

func TestSavedSnapshotLoadsAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot.json")
	require.NoError(t, savedSample().Save(path))
	loaded, err := Load(path)
	require.NoError(t, err)
	assert.Equal(t, savedSample(), loaded)

	require.NoError(t, (&Snapshot{}).Save(path))
	loaded, err = Load(path)
	require.NoError(t, err)
	assert.Equal(t, &Snapshot{}, loaded)
}

func TestSavedSnapshotIsTheSameTextEachTimeAndTellsWhatItIs(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "other")
	sample := savedSample()
	require.NoError(t, sample.Save(one))
	sample.Taken = sample.Taken.In(time.FixedZone("elsewhere", 3600))
	require.NoError(t, sample.Save(other))
	first, err := os.ReadFile(one)
	require.NoError(t, err)
	second, err := os.ReadFile(other)
	require.NoError(t, err)
	assert.Equal(t, string(first), string(second))
	assert.True(t, strings.HasPrefix(string(first), `{
  "kind": "anykind discovery snapshot",
  "format": 1,
  "taken": "2026-03-01T12:30:00.123456789Z",
  "aggregated": true,
  "groups": [
    {
      "name": "",
      "versions": [
        {
          "name": "v1",
          "resources": [
            {
              "name": "pods",
              "kind": "Pod",
              "singular": "pod",
`), string(first))
}

func TestSavedSnapshotReplacesAFileAsAWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot.json")
	require.NoError(t, os.WriteFile(path, []byte("older"), 0o600))
	late := savedSample()
	late.Taken = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC) // which JSON cannot say
	require.ErrorContains(t, late.Save(path), path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "older", string(text))

	require.NoError(t, savedSample().Save(path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	if os.PathSeparator == '/' {
		assert.Equal(t, fs.FileMode(0o644), info.Mode())
	}
	assert.WithinDuration(t, time.Now(), info.ModTime(), time.Hour)
	for name, blocked := range blockedFolders(t) {
		require.ErrorContains(t, savedSample().Save(filepath.Join(blocked, "snapshot.json")), blocked, name)
	}
	require.ErrorIs(t, savedSample().Save(filepath.Join(dir, "no such folder", "snapshot.json")), fs.ErrNotExist)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	require.Error(t, savedSample().Save(filepath.Join(dir, "folder")))
	assert.Equal(t, []string{path}, diskFiles(t, dir))
}

func TestSavedSnapshotThatCannotBeTrustedIsRefused(t *testing.T) {
	whole, err := json.Marshal(savedOf(savedSample()))
	require.NoError(t, err)
	for name, tc := range map[string]struct{ text, says string }{
		"nothing":                 {"", "it is no saved snapshot"},
		"half":                    {string(whole[:len(whole)/2]), "it is no saved snapshot"},
		"two":                     {string(whole) + string(whole), "it is no saved snapshot"},
		"a page":                  {"<html>", "it is no saved snapshot"},
		"a list":                  {"[]", "it is no saved snapshot"},
		"null":                    {"null", `its kind is ""`},
		"another kind":            {`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`, `its kind is "APIGroupList"`},
		"a later format":          {`{"kind":"anykind discovery snapshot","format":2,"groups":"otherwise"}`, "it has format 2 and this version of anykind reads up to 1"},
		"no format":               {`{"kind":"anykind discovery snapshot"}`, "it is damaged: its format is 0"},
		"another shape":           {`{"kind":"anykind discovery snapshot","format":1,"groups":{}}`, "it is damaged: json: cannot unmarshal object"},
		"no time":                 {`{"kind":"anykind discovery snapshot","format":1,"taken":"yesterday"}`, "it is damaged"},
		"a resource of no name":   {`{"kind":"anykind discovery snapshot","format":1,"groups":[{"name":"a","versions":[{"name":"v1","resources":[null]}]}]}`, "a resource of a/v1 has no name"},
		"a version of no name":    {`{"kind":"anykind discovery snapshot","format":1,"groups":[{"name":"a","versions":[{}]}]}`, `the version "" of group "a" has no name`},
		"a version that is twice": {`{"kind":"anykind discovery snapshot","format":1,"groups":[{"name":"a","versions":[{"name":"v1"},{"name":"v1"}]}]}`, `the version "v1" of group "a" has no name or is there twice`},
		"a group that is twice":   {`{"kind":"anykind discovery snapshot","format":1,"groups":[{"name":"a"},{"name":"a"}]}`, `the group "a" is there twice`},
		"a removed of no name":    {`{"kind":"anykind discovery snapshot","format":1,"removed":[{}]}`, "a removed resource has no name"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "snapshot.json")
			require.NoError(t, os.WriteFile(path, []byte(tc.text), 0o600))
			snapshot, err := Load(path)
			require.ErrorContains(t, err, tc.says)
			require.ErrorContains(t, err, path)
			require.Nil(t, snapshot)
		})
	}
}

func TestSavedSnapshotOfALaterMinorVersionIsRead(t *testing.T) {
	snapshot, err := decodeSaved([]byte(`{"kind":"anykind discovery snapshot","format":1,"future":1,"groups":[{"name":"a","future":[]}]}`))
	require.NoError(t, err)
	assert.Equal(t, []Group{{Name: "a"}}, snapshot.Groups)
}

func TestSavedSnapshotThatCannotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "absent.json"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Load(dir)
	require.ErrorContains(t, err, dir)
	if os.Geteuid() > 0 {
		path := filepath.Join(dir, "secret.json")
		require.NoError(t, os.WriteFile(path, nil, 0))
		_, err = Load(path)
		require.ErrorIs(t, err, fs.ErrPermission)
	}
	for _, blocked := range blockedFolders(t) {
		_, err = Load(filepath.Join(blocked, "snapshot.json"))
		require.Error(t, err)
	}
}

func FuzzSavedSnapshot(f *testing.F) {
	whole, err := json.Marshal(savedOf(savedSample()))
	require.NoError(f, err)
	f.Add(whole)
	f.Add([]byte(`{"kind":"anykind discovery snapshot","format":1,"groups":[{"name":"a","versions":[{"name":"v1","resources":[{"name":"x","group":"g","verbs":[]}]}]}]}`))
	path := filepath.Join(f.TempDir(), "snapshot.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		snapshot, err := decodeSaved(data)
		require.Equal(t, err == nil, snapshot != nil)
		if err != nil {
			return
		}
		require.NoError(t, snapshot.Save(path))
		loaded, err := Load(path)
		require.NoError(t, err)
		again, err := json.Marshal(savedOf(loaded))
		require.NoError(t, err)
		first, err := json.Marshal(savedOf(snapshot))
		require.NoError(t, err)
		require.Equal(t, string(first), string(again))
	})
}
