package pagecache_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/sandbox/internal/pagecache"
)

func TestReadHuge_LeavesFile(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	want := bytes.Repeat([]byte("text "), 1<<20)
	for _, content := range [][]byte{want, nil} {
		if err := os.WriteFile(program, content, 0o700); err != nil {
			t.Fatal(err)
		}
		pagecache.ReadHuge(program)
		if got, err := os.ReadFile(program); err != nil || !bytes.Equal(got, content) {
			t.Errorf("after ReadHuge the program has %d bytes and error %v, want the %d bytes before", len(got), err, len(content))
		}
	}
	pagecache.ReadHuge(filepath.Join(folder, "missing"))
	pagecache.ReadHuge(folder)
}
