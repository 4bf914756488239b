package discovery

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const diskWriterEnv = "ANYKIND_TEST_DISK_WRITER"

// TestDiskCache_WriterProcess is the other process of the test below.
func TestDiskCache_WriterProcess(t *testing.T) {
	dir := os.Getenv(diskWriterEnv)
	if dir == "" {
		t.Skip("runs as a process of TestDiskCache_SharedByProcessesStaysWhole")
	}
	diskWriteBoth(t, dir)
}

// diskOther differs from the sample in each group: other verbs, a version less, one empty that was not.
func diskOther() *Snapshot {
	other := diskSample()
	other.Groups[0].Versions[0].Resources[0].Verbs = []string{"watch"}
	other.Groups[1].Versions = other.Groups[1].Versions[:1]
	other.Groups[2].Versions[0].Resources = nil
	return other
}

func diskWriteBoth(t *testing.T, dir string) {
	cache := newDiskCache(dir, diskServer)
	for range 100 {
		assert.NoError(t, cache.write(diskOther(), time.Now()))
		assert.NoError(t, cache.write(diskSample(), time.Now()))
	}
}

func TestDiskCache_SharedByProcessesStaysWhole(t *testing.T) {
	dir := t.TempDir()
	cache := newDiskCache(dir, diskServer)
	require.NoError(t, cache.write(diskSample(), time.Now()))
	var writers sync.WaitGroup
	for range 2 {
		process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiskCache_WriterProcess$", "-test.count=1")
		process.Env = append(os.Environ(), diskWriterEnv+"="+dir)
		writers.Go(func() {
			output, err := process.CombinedOutput()
			assert.NoError(t, err, string(output))
		})
	}
	writers.Go(func() { diskWriteBoth(t, dir) })
	var done atomic.Bool
	var readers sync.WaitGroup
	var read atomic.Int32
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				snapshot, err := cache.read(time.Now())
				if err == nil {
					read.Add(1)
					assertOneOrTheOther(t, snapshot)
				} else if !errors.Is(err, fs.ErrNotExist) { // between two files of a version that has just become empty
					t.Errorf("read: %v", err)
				}
			}
		})
	}
	writers.Wait()
	done.Store(true)
	readers.Wait()
	assert.Positive(t, read.Load())
	snapshot, err := cache.read(time.Now())
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
		assertOneOrTheOther(t, snapshot)
	}
}

// assertOneOrTheOther checks that each version is whole, as one of the two writers had it.
func assertOneOrTheOther(t *testing.T, snapshot *Snapshot) {
	one := diskSample()
	other := diskOther()
	if !assert.Len(t, snapshot.Groups, len(one.Groups)) {
		return
	}
	for g, group := range snapshot.Groups {
		for v, version := range group.Versions {
			first := one.Groups[g].Versions[v]
			if g == 1 && v == 1 { // only the first has it
				assert.Equal(t, first, version)
				continue
			}
			assert.Contains(t, []Version{first, other.Groups[g].Versions[v]}, version)
		}
	}
}
