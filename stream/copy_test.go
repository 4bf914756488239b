package stream_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/stream"
)

// channelWriter sends what is written to it on a channel of an exec.
type channelWriter struct {
	ws      *websocket.Conn
	channel byte
}

func (w channelWriter) Write(p []byte) (int, error) {
	return len(p), w.ws.WriteMessage(websocket.BinaryMessage, append([]byte{w.channel}, p...))
}

// shellServer runs the commands that it is asked for on this machine.
func shellServer(t *testing.T) http.HandlerFunc {
	return upgrading(t, func(ws *websocket.Conn, r *http.Request) {
		command := r.URL.Query()["command"]
		cmd := exec.CommandContext(r.Context(), command[0], command[1:]...) //nolint:gosec // the library's own
		var stdin bytes.Buffer
		if r.FormValue("stdin") != "" {
			cmd.Stdin = &stdin
		}
		var out, err bytes.Buffer
		cmd.Stdout = &out
		cmd.Stderr = &err
		// The first line is waited for before the input is sent.
		if strings.Contains(strings.Join(command, " "), "echo folder") {
			probe := exec.CommandContext(r.Context(), "test", "-d", command[4]+"/"+command[5]) //nolint:gosec // the library's own
			line := "\x01file\n"
			if probe.Run() == nil {
				line = "\x01folder\n"
			}
			send(ws, line)
		}
		for _, message := range receiveAll(ws, r) {
			stdin.WriteString(message[1:])
		}
		failed := cmd.Run()
		_, _ = channelWriter{ws, 1}.Write(out.Bytes())
		_, _ = channelWriter{ws, 2}.Write(err.Bytes())
		if failed != nil {
			send(ws, exit3)
		} else {
			send(ws, success)
		}
		closeNormally(ws)
	}, v5)
}

// receiveAll reads a command's input, if it has any.
func receiveAll(ws *websocket.Conn, r *http.Request) []string {
	if r.FormValue("stdin") == "" {
		return nil
	}
	received := receive(ws)
	return received[:max(0, len(received)-1)] // the last ends the input
}

func needShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("runs sh and tar as a container does")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func requireFile(t *testing.T, path, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(text))
}

func TestCopyTo_FileOntoFolder(t *testing.T) {
	needShell(t)
	dir := t.TempDir()
	local := filepath.Join(dir, "local.txt")
	folder := filepath.Join(dir, "folder")
	write(t, local, "text")
	write(t, filepath.Join(folder, "other"), "other")
	require.NoError(t, os.Symlink("folder", filepath.Join(dir, "link")))
	serving(t, shellServer(t), func(t *testing.T, pods pods) {
		for path, want := range map[string]string{
			folder:                              filepath.Join(folder, "local.txt"),
			filepath.Join(dir, "link"):          filepath.Join(folder, "local.txt"),
			filepath.Join(dir, "new/name.txt"):  filepath.Join(dir, "new/name.txt"),
			filepath.Join(folder, "other"):      filepath.Join(folder, "other"),
			filepath.Join(folder, "sub/-other"): filepath.Join(folder, "sub/-other"),
		} {
			require.NoError(t, stream.CopyTo(t.Context(), pods, "web-0", local, path, nil), path)
			requireFile(t, want, "text")
		}
		// A folder is merged.
		require.NoError(t, stream.CopyTo(t.Context(), pods, "web-0", filepath.Join(dir, "new"), folder, nil))
		requireFile(t, filepath.Join(folder, "name.txt"), "text")
		requireFile(t, filepath.Join(folder, "local.txt"), "text")
	})
}

func TestCopyTo_NoPreserve(t *testing.T) {
	needShell(t)
	dir := t.TempDir()
	local := filepath.Join(dir, "local")
	old := time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC)
	write(t, filepath.Join(local, "file"), "text")
	require.NoError(t, os.Chmod(filepath.Join(local, "file"), 0o777)) //nolint:gosec // what the copy must not keep
	require.NoError(t, os.Chtimes(filepath.Join(local, "file"), old, old))
	usual, err := os.OpenFile(filepath.Join(dir, "usual"), os.O_CREATE, 0o777) //nolint:gosec // as this user's umask makes it
	require.NoError(t, err)
	require.NoError(t, usual.Close())
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Mode()
	}
	serving(t, shellServer(t), func(t *testing.T, pods pods) {
		kept := filepath.Join(t.TempDir(), "kept")
		plain := filepath.Join(t.TempDir(), "plain")
		require.NoError(t, stream.CopyTo(t.Context(), pods, "web-0", local, kept, nil))
		require.NoError(t, stream.CopyTo(t.Context(), pods, "web-0", local, plain, &stream.CopyOptions{NoPreserve: true}))
		for folder, isKept := range map[string]bool{kept: true, plain: false} {
			path := filepath.Join(folder, "file")
			requireFile(t, path, "text")
			info, err := os.Stat(path)
			require.NoError(t, err)
			assert.Equal(t, isKept, info.ModTime().Equal(old), "the time of %s", path)
		}
		assert.Equal(t, os.FileMode(0o777), mode(filepath.Join(kept, "file")))
		assert.Equal(t, mode(filepath.Join(dir, "usual")), mode(filepath.Join(plain, "file")))
	})
}

func TestCopyFrom_SymbolicLink(t *testing.T) {
	needShell(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "releases/3/file"), "text")
	require.NoError(t, os.Symlink("releases/3", filepath.Join(dir, "current")))
	require.NoError(t, os.Symlink("releases/3/file", filepath.Join(dir, "file")))
	serving(t, shellServer(t), func(t *testing.T, pods pods) {
		local := filepath.Join(t.TempDir(), "local")
		err := stream.CopyFrom(t.Context(), pods, "web-0", dir+"/current", local, nil)
		require.EqualError(t, err, `copy from pod "web-0": "./current": it is a symbolic link to "releases/3": `+
			`copy that, or end the path with a slash to copy the folder that it leads to`)
		require.NoFileExists(t, local)
		require.NoError(t, stream.CopyFrom(t.Context(), pods, "web-0", dir+"/current/", local, nil))
		requireFile(t, filepath.Join(local, "file"), "text")
		require.NoError(t, stream.CopyFrom(t.Context(), pods, "web-0", dir+"/releases/", filepath.Join(local, "again"), nil))
		requireFile(t, filepath.Join(local, "again/3/file"), "text")
		err = stream.CopyFrom(t.Context(), pods, "web-0", dir+"/file/", local, nil)
		var exited *stream.ExitError
		require.ErrorAs(t, err, &exited)
		require.ErrorContains(t, err, "Not a directory")
	})
}

func TestCopyTo_CommandEndsBeforeItsOutput(t *testing.T) {
	local := filepath.Join(t.TempDir(), "local")
	write(t, local, "text")
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		send(ws, "\x02sh: not found", strings.Replace(exit3, `"3"`, `"127"`, 1))
		closeNormally(ws)
		_, _ = io.Copy(io.Discard, ws.NetConn())
	}, v5), func(t *testing.T, pods pods) {
		err := stream.CopyTo(t.Context(), pods, "web-0", local, "/tmp/x", nil)
		require.ErrorContains(t, err, "the command ended with exit code 127")
		assert.ErrorContains(t, err, "sh: not found")
	})
}
