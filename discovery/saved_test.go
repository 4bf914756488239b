package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
	sample.TakenAt = time.Date(2026, 3, 1, 12, 30, 0, 123456789, time.UTC)
	sample.Aggregated = true
	sample.Groups[1].Versions[0].Resources[0].Verbs = nil
	sample.Groups[1].Versions[0].Stale = true
	sample.Groups[2].Versions[0].Err = errors.New("get /apis/apps/v1: 503 Service Unavailable: \"<html>\"\n\tno more")
	sample.Groups = append(sample.Groups, Group{Name: "empty.example"})
	sample.Removed = []RemovedResource{{
		Resource:   &Resource{GVR: gone.WithResource("things"), GVK: gone.WithKind("Thing"), Verbs: []string{"get"}},
		DetectedAt: sample.TakenAt.Add(-time.Hour),
	}}
	return sample
}

func TestLoad_RoundTrip(t *testing.T) {
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

func TestSave_EqualSnapshotsYieldEqualFiles(t *testing.T) {
	dir := t.TempDir()
	one := filepath.Join(dir, "one")
	other := filepath.Join(dir, "other")
	sample := savedSample()
	require.NoError(t, sample.Save(one))
	sample.TakenAt = sample.TakenAt.In(time.FixedZone("elsewhere", 3600))
	require.NoError(t, sample.Save(other))
	first, err := os.ReadFile(one)
	require.NoError(t, err)
	second, err := os.ReadFile(other)
	require.NoError(t, err)
	assert.Equal(t, string(first), string(second))
	text := regexp.MustCompile("sha256:[0-9a-f]{64}").ReplaceAllString(string(first), "sha256:CHECKSUM")
	assert.True(t, strings.HasPrefix(text, `{
  "kind": "anykind discovery snapshot",
  "format": 3,
  "checksum": "sha256:CHECKSUM",
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
              "singularName": "pod",
              "namespaced": true,
              "kind": "Pod",
`), text)
}

// sealed completes a file by its checksum.
func sealed(t testing.TB, text string) string {
	t.Helper()
	text = strings.Replace(text, `"format":3`, `"format":3,"checksum":"`+emptyChecksum+`"`, 1)
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, []byte(text)))
	return strings.Replace(text, emptyChecksum, checksumOf(compact.Bytes()), 1)
}

func TestSave_ReplacesWholeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "snapshot.json")
	require.NoError(t, os.WriteFile(path, []byte("older"), 0o600))
	late := savedSample()
	late.TakenAt = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC) // which JSON cannot say
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

func TestLoad_RejectsInvalidFiles(t *testing.T) {
	whole, err := encodeSaved(savedSample())
	require.NoError(t, err)
	for name, tc := range map[string]struct{ text, errText string }{
		"nothing":                 {"", "not a saved snapshot"},
		"half":                    {string(whole[:len(whole)/2]), "not a saved snapshot"},
		"two":                     {string(whole) + string(whole), "not a saved snapshot"},
		"a page":                  {"<html>", "not a saved snapshot"},
		"a list":                  {"[]", "not a saved snapshot"},
		"null":                    {"null", `kind is ""`},
		"another kind":            {`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`, `kind is "APIGroupList"`},
		"a later format":          {`{"kind":"anykind discovery snapshot","format":4,"groups":"otherwise"}`, "format 4 is newer than 3 (update anykind"},
		"no format":               {`{"kind":"anykind discovery snapshot"}`, "format 0 is older than 3"},
		"another shape":           {sealed(t, `{"kind":"anykind discovery snapshot","format":3,"groups":{}}`), "damaged: json: cannot unmarshal object"},
		"no time":                 {sealed(t, `{"kind":"anykind discovery snapshot","format":3,"taken":"yesterday"}`), "damaged"},
		"a resource of no name":   {sealed(t, `{"kind":"anykind discovery snapshot","format":3,"groups":[{"name":"a","versions":[{"name":"v1","resources":[null]}]}]}`), `group "a": version v1: invalid resource name ""`},
		"a version of no name":    {sealed(t, `{"kind":"anykind discovery snapshot","format":3,"groups":[{"name":"a","versions":[{}]}]}`), `group "a": invalid version name ""`},
		"a version that is twice": {sealed(t, `{"kind":"anykind discovery snapshot","format":3,"groups":[{"name":"a","versions":[{"name":"v1"},{"name":"v1"}]}]}`), `group "a": version "v1": listed twice`},
		"a group that is twice":   {sealed(t, `{"kind":"anykind discovery snapshot","format":3,"groups":[{"name":"a"},{"name":"a"}]}`), `group "a": listed twice`},
		"an earlier format":       {`{"kind":"anykind discovery snapshot","format":2,"groups":[]}`, "format 2 is older than 3"},
		"no checksum":             {`{"kind":"anykind discovery snapshot","format":3,"groups":[]}`, "content does not match checksum"},
		"a path for a resource":   {sealed(t, `{"kind":"anykind discovery snapshot","format":3,"groups":[{"name":"a","versions":[{"name":"v1","resources":[{"name":"../secrets"}]}]}]}`), `invalid resource name ".."`},
		"a removed of no name":    {sealed(t, `{"kind":"anykind discovery snapshot","format":3,"removed":[{"resources":[{}]}]}`), `removed: invalid resource name ""`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "snapshot.json")
			require.NoError(t, os.WriteFile(path, []byte(tc.text), 0o600))
			snapshot, err := Load(path)
			require.ErrorContains(t, err, tc.errText)
			require.ErrorContains(t, err, path)
			require.Nil(t, snapshot)
		})
	}
}

func TestLoad_IgnoresUnknownFields(t *testing.T) {
	snapshot, err := decodeSaved([]byte(sealed(t, `{"kind":"anykind discovery snapshot","format":3,"future":1,"groups":[{"name":"a","future":[]}]}`)))
	require.NoError(t, err)
	assert.Equal(t, []Group{{Name: "a"}}, snapshot.Groups)
}

func TestLoad_UnreadableFileIsAnError(t *testing.T) {
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
	whole, err := encodeSaved(savedSample())
	require.NoError(f, err)
	f.Add(whole)
	f.Add([]byte(sealed(f, `{"kind":"anykind discovery snapshot","format":3,"groups":[{"name":"a","versions":[{"name":"v1","resources":[{"name":"x","group":"g","verbs":[]}]}]}]}`)))
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

func TestLoad_RejectsFlippedBitInEveryByte(t *testing.T) {
	whole, err := encodeSaved(savedSample())
	require.NoError(t, err)
	for at := range whole {
		if whole[at] == ' ' && at%8 > 0 { // most of the indentation
			continue
		}
		for _, bit := range []int{at % 8, 5} { // 5 changes the case of a letter
			damaged := bytes.Clone(whole)
			damaged[at] ^= 1 << bit
			_, err := decodeSaved(damaged)
			require.Error(t, err, "byte %d, bit %d: %q became %q", at, bit, whole[at], damaged[at])
		}
	}
}

func TestLoad_AcceptsOtherWhiteSpace(t *testing.T) {
	whole, err := encodeSaved(savedSample())
	require.NoError(t, err)
	for _, text := range []string{
		strings.ReplaceAll(string(whole), "\n", "\r\n"), strings.ReplaceAll(string(whole), "  ", "\t"), strings.TrimSpace(string(whole)),
	} {
		loaded, err := decodeSaved([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, savedSample(), loaded)
	}
}
