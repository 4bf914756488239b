package archive

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// archived packs entries, which a real tar may not produce.
func archived(t testing.TB, entries ...tar.Header) []byte {
	var text bytes.Buffer
	writer := tar.NewWriter(&text)
	for _, header := range entries {
		content := ""
		if header.Typeflag == tar.TypeReg {
			content = "text"
			header.Size = int64(len(content))
		}
		if header.Mode == 0 && header.Typeflag != tar.TypeXGlobalHeader {
			header.Mode = 0o755
		}
		require.NoError(t, writer.WriteHeader(&header))
		_, err := io.WriteString(writer, content)
		require.NoError(t, err)
	}
	require.NoError(t, writer.Close())
	return text.Bytes()
}

func folder(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name} }
func file(name string) tar.Header   { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
func symlink(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
}
func link(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target}
}

// guarded returns a folder to unpack into; check fails if anything outside of it has changed.
func guarded(t testing.TB) (local string, check func()) {
	around := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(around, "other"), []byte("untouched"), 0o600))
	local = filepath.Join(around, "local")
	return local, func() {
		entries, err := os.ReadDir(around)
		require.NoError(t, err)
		for _, entry := range entries {
			require.Contains(t, []string{"local", "other"}, entry.Name())
		}
		text, err := os.ReadFile(filepath.Join(around, "other"))
		require.NoError(t, err)
		require.Equal(t, "untouched", string(text))
		_ = filepath.WalkDir(local, func(at string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type() == fs.ModeSymlink {
				staysIn(t, local, at)
			}
			return nil
		})
	}
}

// staysIn fails for a link that points outside.
func staysIn(t testing.TB, local, at string) {
	end, err := filepath.EvalSymlinks(at)
	if err != nil {
		return
	}
	folder, err := filepath.EvalSymlinks(local)
	require.NoError(t, err)
	below, err := filepath.Rel(folder, end)
	require.NoError(t, err)
	require.True(t, filepath.IsLocal(below), "%s leads to %s", at, end)
}

func TestUnpack_RejectsHostileArchives(t *testing.T) {
	long := strings.Repeat("../", 50)
	for name, c := range map[string]struct {
		entries []tar.Header
		want    string
	}{
		"an absolute name":         {[]tar.Header{folder("data/"), file("/etc/passwd")}, "absolute name"},
		"a name that climbs":       {[]tar.Header{folder("data/"), file("data/../other")}, ".. in a name"},
		"a name that begins so":    {[]tar.Header{file("../other")}, ".. in a name"},
		"another name":             {[]tar.Header{folder("data/"), file("database")}, "not requested"},
		"another name at first":    {[]tar.Header{file("other")}, "not requested"},
		"no beginning":             {[]tar.Header{file("data/file")}, "does not begin with"},
		"two files for one":        {[]tar.Header{file("data"), file("data")}, "more than the requested file"},
		"a file below a file":      {[]tar.Header{file("data"), file("data/x")}, "more than the requested file"},
		"a link to the root":       {[]tar.Header{folder("data/"), symlink("data/x", "/")}, "outside of the copied folder"},
		"a link that climbs":       {[]tar.Header{folder("data/"), symlink("data/x", "../other")}, "outside of the copied folder"},
		"a link that climbs far":   {[]tar.Header{folder("data/"), folder("data/a/"), symlink("data/a/x", long)}, "outside of the copied folder"},
		"a link that climbs later": {[]tar.Header{folder("data/"), symlink("data/s", "."), symlink("data/x", "s/../other")}, "outside of the copied folder"},
		"a link instead":           {[]tar.Header{symlink("data", "other")}, `it is a symbolic link to "other"`},
		"a link to nothing":        {[]tar.Header{folder("data/"), symlink("data/x", "")}, "outside of the copied folder"},
		"a file through a link":    {[]tar.Header{folder("data/"), folder("data/a/"), symlink("data/x", "a"), file("data/x/y")}, "leads through"},
		"a link through a link": {
			[]tar.Header{folder("data/"), folder("data/a/"), symlink("data/a/s", ".."), symlink("data/a/s/x", "../../other")}, "leads through",
		},
		"a folder over a link": {
			[]tar.Header{folder("data/"), folder("data/a/"), symlink("data/x", "a"), folder("data/x/")}, "file exists",
		},
		"a hard link out":          {[]tar.Header{folder("data/"), link("data/x", "data/../other")}, ".. in a name"},
		"a hard link elsewhere":    {[]tar.Header{folder("data/"), link("data/x", "/etc/passwd")}, "absolute name"},
		"a hard link to a symlink": {[]tar.Header{folder("data/"), symlink("data/s", "a"), link("data/x", "data/s")}, "the archive has no such file"},
		"a hard link through one":  {[]tar.Header{folder("data/"), folder("data/a/"), file("data/a/f"), symlink("data/s", "a"), link("data/x", "data/s/f")}, "the archive has no such file"},
		"a hard link instead":      {[]tar.Header{link("data", "data/x")}, "link to another file"},
		"a device":                 {[]tar.Header{folder("data/"), {Typeflag: tar.TypeBlock, Name: "data/x"}}, "neither a file"},
		"a pipe":                   {[]tar.Header{folder("data/"), {Typeflag: tar.TypeFifo, Name: "data/x"}}, "neither a file"},
		"a device instead":         {[]tar.Header{{Typeflag: tar.TypeChar, Name: "data"}}, "neither a file"},
		"nothing":                  {nil, "the archive is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			local, check := guarded(t)
			err := Unpack(t.Context(), bytes.NewReader(archived(t, c.entries...)), "data", local, 0, nil)
			require.ErrorContains(t, err, c.want)
			check()
		})
	}
}

func TestUnpack_ReplacesExistingLinks(t *testing.T) {
	local, check := guarded(t)
	require.NoError(t, os.Mkdir(local, 0o700))
	require.NoError(t, os.Symlink("../other", filepath.Join(local, "file")))
	require.NoError(t, os.Link(filepath.Join(local, "../other"), filepath.Join(local, "hard")))
	archive := archived(t, folder("data/"), file("data/file"), file("data/hard"))
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(archive), "data", local, 0, nil))
	check()
	for _, name := range []string{"file", "hard"} {
		text, err := os.ReadFile(filepath.Join(local, name))
		require.NoError(t, err)
		assert.Equal(t, "text", string(text))
	}

	require.NoError(t, os.Symlink("/etc", filepath.Join(local, "dir")))
	err := Unpack(t.Context(), bytes.NewReader(archived(t, folder("data/"), file("data/dir/file"))), "data", local, 0, nil)
	require.ErrorContains(t, err, "leads through")
}

func TestUnpack_KeepsModesTimesAndLinks(t *testing.T) {
	when := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	closed := folder("data/closed/")
	closed.Mode = 0o500
	closed.ModTime = when
	private := file("data/closed/private")
	private.Mode = 0o6640
	private.ModTime = when
	archive := archived(t,
		folder("data/"), closed, private, file("data/missing/parent"), symlink("data/closed/up", "../missing/parent"),
		link("data/hard", "data/closed/private"), symlink("data/dangling", "nowhere"),
		tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}},
	)
	local, check := guarded(t)
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(archive), "data", local, 0, nil))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(local, "closed"), 0o700) })
	check()
	info, err := os.Stat(filepath.Join(local, "closed/private"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o640), info.Mode())
	assert.True(t, info.ModTime().Equal(when))
	info, err = os.Stat(filepath.Join(local, "closed"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o500), info.Mode().Perm())
	assert.True(t, info.ModTime().Equal(when))
	target, err := os.Readlink(filepath.Join(local, "closed/up"))
	require.NoError(t, err)
	assert.Equal(t, "../missing/parent", filepath.ToSlash(target))
	hard, err := os.ReadFile(filepath.Join(local, "hard"))
	require.NoError(t, err)
	assert.Equal(t, "text", string(hard))
}

func TestUnpack_LocalWithSlash(t *testing.T) {
	for name, isFolder := range map[string]bool{"missing": false, "folder": true} {
		t.Run(name, func(t *testing.T) {
			local, check := guarded(t)
			if isFolder {
				require.NoError(t, os.Mkdir(local, 0o700))
			}
			err := Unpack(t.Context(), bytes.NewReader(archived(t, file("data"))), "data", local+"/", 0, nil)
			check()
			if isFolder {
				require.Error(t, err)
				assert.NoFileExists(t, filepath.Join(local, "local"))
				return
			}
			require.NoError(t, err)
			assert.FileExists(t, local)
		})
	}
}

func TestUnpack_CutOffOrEndlessArchive(t *testing.T) {
	archive := archived(t, folder("data/"), file("data/file"))
	local, _ := guarded(t)
	err := Unpack(t.Context(), bytes.NewReader(archive[:1026]), "data", local, 0, nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	endless := io.MultiReader(bytes.NewReader(archive), zeros{})
	require.ErrorContains(t, Unpack(t.Context(), endless, "data", local, 0, nil), "more behind the archive's end")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// FuzzUnpack unpacks archives of any names, links and kinds, and checks that nothing is written outside.
func FuzzUnpack(f *testing.F) {
	f.Add("a", "..", byte(tar.TypeSymlink), "a/b", "x", byte(tar.TypeReg))
	f.Add("s", ".", byte(tar.TypeSymlink), "t", "s/../..", byte(tar.TypeSymlink))
	f.Add("h", "data/../../other", byte(tar.TypeLink), "h", "", byte(tar.TypeReg))
	f.Add("d", "", byte(tar.TypeDir), "d/l", "../../other", byte(tar.TypeSymlink))
	f.Fuzz(func(t *testing.T, name1, target1 string, kind1 byte, name2, target2 string, kind2 byte) {
		var text bytes.Buffer
		writer := tar.NewWriter(&text)
		for _, header := range []*tar.Header{
			{Typeflag: tar.TypeDir, Name: "data/", Mode: 0o700}, {Typeflag: tar.TypeDir, Name: "data/deep/er/", Mode: 0o700},
			{Typeflag: kind1, Name: "data/" + name1, Linkname: target1, Mode: 0o600},
			{Typeflag: kind2, Name: "data/" + name2, Linkname: target2, Mode: 0o600},
			{Typeflag: tar.TypeReg, Name: "data/" + name1 + "/" + name2, Mode: 0o600},
		} {
			if writer.WriteHeader(header) != nil {
				writer = tar.NewWriter(&text)
			}
		}
		_ = writer.Close()
		local, check := guarded(t)
		_ = Unpack(t.Context(), &text, "data", local, 0, nil)
		check()
	})
}
