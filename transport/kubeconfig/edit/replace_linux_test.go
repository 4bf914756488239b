package edit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

// mountedFile names the file to edit, in the process that has it mounted.
const mountedFile = "ANYKIND_TEST_MOUNTED_FILE"

// TestFile_BindMountedFile edits a file that is mounted by itself, as containers have it, in a mount namespace of its own.
// Where the kernel grants none, TestReplacer_OverwritesMountedFile alone covers the case.
func TestFile_BindMountedFile(t *testing.T) {
	if path := os.Getenv(mountedFile); path != "" {
		source := path + ".source"
		require.NoError(t, os.WriteFile(source, []byte("kind: Config # longer\n"), 0o600))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, syscall.Mount(source, path, "", syscall.MS_BIND, ""))
		require.ErrorIs(t, os.Rename(source, path), syscall.EBUSY)
		require.NoError(t, edit.File(t.Context(), path, setContext("a")))
		assert.Equal(t, "kind: Config # longer\ncurrent-context: a\n", readFile(t, source))
		return
	}
	path := filepath.Join(t.TempDir(), "config")
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFile_BindMountedFile$", "-test.v")
	again.Env = append(os.Environ(), mountedFile+"="+path)
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	output, err := again.CombinedOutput()
	if err != nil && !strings.Contains(string(output), "=== RUN") {
		t.Logf("no namespace to mount in (%v): TestReplacer_OverwritesMountedFile covers the case", err)
		return
	}
	require.NoError(t, err, "%s", output)
}
