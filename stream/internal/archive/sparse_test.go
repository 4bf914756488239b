package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sparseArchive holds a file named data with 512 bytes at an offset and holes around them, in GNU tar's old format.
func sparseArchive(t *testing.T, offset, size int64) []byte {
	t.Helper()
	header := make([]byte, 512)
	put := func(at int, text string) { copy(header[at:], text) }
	number := func(at int, n int64) { put(at, fmt.Sprintf("%011o", n)) }
	put(0, "data")
	put(100, "0000644")
	put(108, "0000000")
	put(116, "0000000")
	number(124, 512)
	number(136, 1_600_000_000)
	put(156, "S")
	put(257, "ustar  ")
	number(386, offset)
	number(398, 512)
	number(410, size)
	number(422, 0)
	number(483, size)
	put(148, "        ")
	sum := 0
	for _, c := range header {
		sum += int(c)
	}
	put(148, fmt.Sprintf("%06o\x00 ", sum))
	return append(append(header, bytes.Repeat([]byte("x"), 512)...), make([]byte, 1024)...)
}

func TestUnpack_SparseFileStaysSparse(t *testing.T) {
	const offset, size = 1<<20 + 4096, 3<<20 + 100
	local := filepath.Join(t.TempDir(), "local")
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(sparseArchive(t, offset, size)), "data", local, 0, nil))
	text, err := os.ReadFile(local)
	require.NoError(t, err)
	want := make([]byte, size)
	copy(want[offset:], bytes.Repeat([]byte("x"), 512))
	assert.True(t, bytes.Equal(want, text))
	used, known := diskUsage(t, local)
	if known {
		assert.Less(t, used, int64(1<<20))
	}
}

func TestUnpack_MaxSize(t *testing.T) {
	local := filepath.Join(t.TempDir(), "local")
	sparse := sparseArchive(t, 1<<20, 8<<30)
	err := Unpack(t.Context(), bytes.NewReader(sparse), "data", local, 1<<30, nil)
	require.EqualError(t, err, `"data": with it the files are larger than MaxSize, 1073741824 bytes`)
	require.NoFileExists(t, local)

	archive := archived(t, folder("data/"), file("data/one"), file("data/two"))
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(archive), "data", local, 8, nil))
	err = Unpack(t.Context(), bytes.NewReader(archive), "data", local, 7, nil)
	require.ErrorContains(t, err, `"data/two": with it the files are larger than MaxSize`)
}

func TestUnpack_HolesEndWithContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	err := Unpack(ctx, bytes.NewReader(sparseArchive(t, 1<<20, 1<<32)), "data", filepath.Join(t.TempDir(), "local"), 0, func(now Progress) {
		if now.Done > 0 {
			cancel(io.ErrNoProgress)
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, io.ErrNoProgress)
}

func TestUnpack_NamesInErrorsAreSafe(t *testing.T) {
	const hostile = "data/\x1b[2J\n\u202e"
	for _, entries := range [][]tar.Header{
		{folder("data/"), {Typeflag: tar.TypeFifo, Name: hostile}},
		{folder("data/"), symlink("data/x", "/"+hostile)},
		{folder("data/"), symlink(hostile, "."), folder(hostile)},
		{folder("data/"), folder(hostile), file(hostile + "/x"), folder(hostile + "/x/y")},
		{folder("data/"), folder("data/" + hostile), file("data/" + hostile)},
	} {
		err := Unpack(t.Context(), bytes.NewReader(archived(t, entries...)), "data", filepath.Join(t.TempDir(), "local"), 0, nil)
		require.Error(t, err)
		for _, control := range []string{"\x1b", "\n", "\u202e"} {
			assert.NotContains(t, err.Error(), control)
		}
	}
}
