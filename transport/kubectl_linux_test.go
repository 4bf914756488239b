package transport_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport"
)

// fakeKubectl is how this test binary acts as kubectl; with killedOwner it runs one and is killed.
const (
	fakeKubectl = "ANYKIND_TEST_KUBECTL"
	killedOwner = "ANYKIND_TEST_KUBECTL_OWNER"
)

// TestKubectlProcess is no test but the kubectl of the tests below, which a shell script wraps without becoming it.
func TestKubectlProcess(*testing.T) {
	mode := os.Getenv(fakeKubectl)
	args := flag.Args()
	if mode == "" || len(args) == 0 {
		return
	}
	if args[0] == "config" {
		if mode == "no namespace" {
			_, _ = io.WriteString(os.Stderr, "token s3cret\nerror: context was not found\n")
			os.Exit(1)
		}
		if mode == "slow namespace" {
			_ = os.WriteFile(filepath.Join(os.TempDir(), "asked"), nil, 0o600)
			time.Sleep(time.Hour)
		}
		namespaces := "plugin shop" // all of the cluster's extension and of the context
		if args[len(args)-1] == "jsonpath={.contexts[0].context.namespace}" {
			namespaces = "shop"
		}
		fmt.Print(namespaces)
		os.Exit(0)
	}
	socket, _ := strings.CutPrefix(args[1], "--unix-socket=")
	pidFile := filepath.Join(filepath.Dir(filepath.Dir(socket)), "pid")
	_ = os.WriteFile(pidFile+".new", []byte(strconv.Itoa(os.Getpid())), 0o600)
	_ = os.Rename(pidFile+".new", pidFile) // the tests wait for the file, and then read it
	if mode == "silent" {
		time.Sleep(time.Hour)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "unix", socket)
	if err != nil {
		os.Exit(1)
	}
	fmt.Print("Starting ") // in several writes, as a pipe may deliver it
	fmt.Println("to serve on", socket)
	_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // a test's
		die := func() {
			_, _ = io.WriteString(os.Stderr, "token s3cret\nerror: lost the \x1b[2J cluster\n")
			os.Exit(3)
		}
		fmt.Println("a request")
		switch r.URL.Path {
		case "/die":
			die()
		case "/watch":
			_, _ = io.WriteString(w, "event\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Millisecond)
			die()
		case "/stream":
			_, both, _ := http.NewResponseController(w).Hijack()
			_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello\n")
			_ = both.Flush()
			_, _ = both.ReadString('\n')
			die()
		}
	}))
}

// wrapper returns a command that runs the fake kubectl and does not become it, with a folder for sockets of its own.
func wrapper(t *testing.T, mode string) (command, folder string) {
	t.Helper()
	// Not t.TempDir: a socket's path must be short.
	folder, err := os.MkdirTemp("/tmp", "ak") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Setenv("TMPDIR", folder)
	t.Setenv(fakeKubectl, mode)
	command = filepath.Join(t.TempDir(), "kubectl")
	script := fmt.Sprintf("#!/bin/sh\n%q -test.run='^TestKubectlProcess$' -- \"$@\"\nexit $?\n", os.Args[0])
	require.NoError(t, os.WriteFile(command, []byte(script), 0o700)) //nolint:gosec // it is a program
	return command, folder
}

// gone waits until the fake kubectl has ended, and checks that nothing of it is left.
func gone(t *testing.T, folder string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return isGone(pid) }, time.Minute, 10*time.Millisecond, "kubectl goes on")
	left, err := filepath.Glob(filepath.Join(folder, "anykind-kubectl-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// isGone reports whether a process has ended, also if nobody has waited for it.
func isGone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestOpenKubectl_ExitBeforeServingFails(t *testing.T) {
	_, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Command: "true"})
	require.ErrorContains(t, err, "start kubectl: exit status 0")
}

func TestOpenKubectl_ContextBoundsStart(t *testing.T) {
	for mode, begun := range map[string]string{"silent": "pid", "slow namespace": "asked"} {
		t.Run(mode, func(t *testing.T) {
			command, folder := wrapper(t, mode)
			ctx, cancel := context.WithCancelCause(t.Context())
			cause := errors.New("the user left")
			go func() {
				for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
					if _, err := os.Stat(filepath.Join(folder, begun)); err == nil {
						cancel(cause)
					}
				}
			}()
			_, err := transport.OpenKubectl(ctx, &transport.KubectlOptions{Command: command})
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, cause)
			gone(t, folder)
		})
	}
}

func TestOpenKubectl_CloseEndsWrappedProcess(t *testing.T) {
	command, folder := wrapper(t, "serving")
	conn, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Command: command})
	require.NoError(t, err)
	assert.Equal(t, "shop", conn.Namespace())
	require.NoError(t, do(t, conn, &transport.Request{Path: "/version"}))
	conn.Close()
	gone(t, folder)
	require.ErrorContains(t, do(t, conn, &transport.Request{Path: "/version"}), "has exited")
}

func TestOpenKubectl_NamespaceErrorIsKubectls(t *testing.T) {
	command, folder := wrapper(t, "no namespace")
	_, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Command: command})
	require.ErrorContains(t, err, "exit status 1: context was not found")
	assert.NotContains(t, err.Error(), "s3cret")
	gone(t, folder)
}

func TestOpenKubectl_ErrorsHaveItsOwn(t *testing.T) {
	for name, ask := range map[string]func(t *testing.T, conn *transport.Conn) error{
		"a request": func(t *testing.T, conn *transport.Conn) error {
			return do(t, conn, &transport.Request{Path: "/die"})
		},
		"a watch": func(t *testing.T, conn *transport.Conn) error {
			response, err := conn.Do(t.Context(), &transport.Request{Path: "/watch"})
			require.NoError(t, err)
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			assert.Equal(t, "event\n", string(text))
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			return err
		},
		"a stream": func(t *testing.T, conn *transport.Conn) error {
			stream, _, err := conn.Upgrade(t.Context(), upgradeRequest("/stream"))
			require.NoError(t, err)
			defer func() { _ = stream.Close() }()
			_, err = io.WriteString(stream, "end\n")
			require.NoError(t, err)
			text, err := io.ReadAll(stream)
			assert.Equal(t, "hello\n", string(text))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			command, _ := wrapper(t, "serving")
			conn, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Command: command})
			require.NoError(t, err)
			defer conn.Close()
			for _, err := range []error{ask(t, conn), do(t, conn, &transport.Request{Path: "/version"})} {
				require.ErrorContains(t, err, "kubectl, which makes the requests, has exited: exit status 3: lost the cluster")
				assert.NotContains(t, err.Error(), "s3cret", "what else it printed may be secret")
			}
		})
	}
}

func TestOpenKubectl_SweepsAfterKilledPrograms(t *testing.T) {
	if command := os.Getenv(killedOwner); command != "" {
		conn, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Command: command})
		require.NoError(t, err)
		require.NotNil(t, conn)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	command, folder := wrapper(t, "serving")
	owner := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenKubectl_SweepsAfterKilledPrograms$")
	owner.Env = append(os.Environ(), killedOwner+"="+command)
	var killed *exec.ExitError
	require.ErrorAs(t, owner.Run(), &killed)
	text, err := os.ReadFile(filepath.Join(folder, "pid"))
	require.NoError(t, err)
	orphan, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	left, err := filepath.Glob(filepath.Join(folder, "anykind-kubectl-*"))
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.False(t, isGone(orphan))
	require.NoError(t, os.Chtimes(left[0], time.Time{}, time.Now().Add(-time.Hour)))

	conn, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Command: command})
	require.NoError(t, err)
	owned, err := filepath.Glob(filepath.Join(folder, "anykind-kubectl-*"))
	require.NoError(t, err)
	require.Len(t, owned, 1)
	require.NoError(t, os.Chtimes(owned[0], time.Time{}, time.Now().Add(-time.Hour)))
	other, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Command: command})
	require.NoError(t, err)
	require.NoError(t, do(t, conn, &transport.Request{Path: "/version"}), "that of a living program stays")
	require.Eventually(t, func() bool { return isGone(orphan) }, time.Minute, 10*time.Millisecond)
	assert.NoDirExists(t, left[0])
	other.Close()
	conn.Close()
	gone(t, folder)
}
