//go:build unix

package build

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kwokPatches change kwok's source before the build. The streams of kwok v0.8.0's kubelet differ from a real kubelet's in ways
// relevant to clients' tests:
//
//   - exec: the command's standard input was never closed, so that a command reading to its end hung. It is closed.
//   - exec: the exit code was lost. The error gets the type expected by the streaming server; a command ended by a signal gets a
//     shell's code, 128 plus the signal's number.
//   - exec with a terminal: the command did not control it, so that Ctrl-C sent no signal. It leads a session of its own
//     with that terminal.
//   - exec with a terminal: kwok's tunnel failed for a command without input and cut off the end of its output. Output is
//     copied until the command has closed the terminal; the end of input is sent as ^D.
//   - attach: kwok only shows a log. With input or a terminal, whatever the pod's spec, there is a shell that runs each line; its
//     exit code is not sent, because attach has no exit code.
//
// A patch fails the build unless its lines occur exactly once, so that a different version of kwok is never patched by half. Each
// change of a patch must increase the Revision in [Kwok], a part of the binary's name in the cache.
var kwokPatches = []patch{
	{
		file: "pkg/utils/exec/exec.go",
		old:  "_, _ = io.Copy(inPipe, opt.In)\n",
		new:  "_, _ = io.Copy(inPipe, opt.In)\n_ = inPipe.Close()\n",
	},
	{
		file: "pkg/utils/exec/cmd_other.go",
		old:  "\tcmd := exec.CommandContext(ctx, name, arg...)\n",
		new: `	cmd := exec.CommandContext(ctx, name, arg...)
	opt := GetExecOptions(ctx)
	if tty, ok := opt.In.(*os.File); ok && opt.Out == tty {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
`,
	},
	{
		file: "pkg/kwok/server/debugging_exec.go",
		old:  "\tif tty {\n\t\treturn s.execInContainerWithTTY(ctx, cmd, in, stdout, resize)\n\t}\n\n\treturn s.execInContainer(ctx, cmd, in, stdout, stderr)\n}\n",
		new: `	if tty {
		return withExitCode(s.execInContainerWithTTY(ctx, cmd, in, stdout, resize))
	}
	return withExitCode(s.execInContainer(ctx, cmd, in, stdout, stderr))
}

// withExitCode returns err in the form in which ServeExec finds an exit code.
func withExitCode(err error) error {
	var exit interface {
		ExitCode() int
		Sys() any
	}
	if !errors.As(err, &exit) {
		return err
	}
	code := exit.ExitCode()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	if code <= 0 {
		return err
	}
	return k8sexec.CodeExitError{Err: err, Code: code}
}
`,
	},
	{
		file: "pkg/kwok/server/debugging_exec.go",
		old:  "import (\n\t\"context\"\n",
		new:  "import (\n\t\"context\"\n\t\"errors\"\n\t\"syscall\"\n",
	},
	{
		file: "pkg/kwok/server/debugging_exec.go",
		old:  "\t\"k8s.io/cri-streaming/pkg/streaming/remotecommand\"\n",
		new:  "\t\"k8s.io/cri-streaming/pkg/streaming/remotecommand\"\n\tk8sexec \"k8s.io/utils/exec\"\n",
	},
	{
		file: terminalFile,
		old:  "\tdefer func() {\n\t\t_ = pty.Close()\n\t\t_ = tty.Close()\n\t}()\n",
		new:  "",
	},
	{
		file: terminalFile,
		old:  kwokTunnel,
		new: `	// Reading fails with EIO once no process has the terminal open.
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		var sink io.Writer = io.Discard
		if out != nil {
			sink = out
		}
		_, _ = io.Copy(sink, pty)
		_ = pty.Close() // ends the command if the client left first
	}()
	defer func() {
		_ = tty.Close()
		<-drained
	}()
	if in != nil {
		go func() {
			_, _ = io.Copy(pty, in)
			_, _ = pty.Write([]byte{4}) // ^D
		}()
	}
`,
	},
	{
		file: terminalFile,
		old:  "\tutilsnet \"sigs.k8s.io/kwok/pkg/utils/net\"\n",
		new:  "",
	},
	{
		file: "pkg/kwok/server/debugging_attach.go",
		old:  "\topts := &crilogs.LogOptions{\n",
		new: `	if in != nil || tty {
		main := []string{"sh", "-c", "while IFS= read -r line; do eval \"$line\"; done"}
		err := s.ExecInContainer(ctx, name, uid, containerName, main, in, stdout, stderr, tty, resize, 0)
		if _, exited := err.(k8sexec.ExitError); exited {
			return nil
		}
		return err
	}

	opts := &crilogs.LogOptions{
`,
	},
	{
		file: "pkg/kwok/server/debugging_attach.go",
		old:  "\t\"k8s.io/cri-streaming/pkg/streaming/remotecommand\"\n",
		new:  "\t\"k8s.io/cri-streaming/pkg/streaming/remotecommand\"\n\tk8sexec \"k8s.io/utils/exec\"\n",
	},
}

// terminalFile is the source file of kwok's commands with a terminal.
const terminalFile = "pkg/kwok/server/debugging_exec_other.go"

// kwokTunnel is kwok's code for copying a terminal's input and output.
const kwokTunnel = `	// Create a two way tunnel for pty and stream.
	go func() {
		buf1 := s.bufPool.Get()
		buf2 := s.bufPool.Get()
		defer func() {
			s.bufPool.Put(buf1)
			s.bufPool.Put(buf2)
		}()
		stm := struct {
			io.Reader
			io.Writer
		}{in, out}
		err := utilsnet.Tunnel(ctx, pty, stm, buf1, buf2)
		if err != nil {
			logger.Error("failed to tunnel",
				"err", err,
			)
		}
	}()
`

// patch replaces lines in a file of a copied module.
type patch struct {
	file     string // its path in the module, with slashes
	old, new string
}

// patchedCopy copies the module in moduleDir to scratch and applies the patches to the copy. (go build -overlay cannot
// replace files in the module cache.)
func patchedCopy(patches []patch, moduleDir, scratch string) (string, error) {
	dir := filepath.Join(scratch, "patched")
	if err := os.CopyFS(dir, os.DirFS(moduleDir)); err != nil {
		return "", fmt.Errorf("copy module to patch it: %w", err)
	}
	for _, p := range patches {
		path := filepath.Join(dir, filepath.FromSlash(p.file))
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("patch %s: %w", p.file, err)
		}
		if strings.Count(string(text), p.old) != 1 {
			return "", fmt.Errorf("patch %s: the lines to replace were not found once (the patch is for another version)", p.file)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), p.old, p.new, 1)), 0o644); err != nil {
			return "", fmt.Errorf("patch %s: %w", p.file, err)
		}
	}
	return dir, nil
}

// stageFolders hold kwok's life cycles: nodes become and stay ready at once, pods run, jobs complete, and objects can be
// deleted.
var stageFolders = []string{"node/fast", "node/heartbeat", "pod/fast"}

// installStages writes kwok's own stages as one file into its binary's folder.
func (c *Cache) installStages(kwok Binary, module *downloaded, scratch string) error {
	var all bytes.Buffer
	for _, folder := range stageFolders {
		files, err := filepath.Glob(module.folder("kustomize", "stage", filepath.FromSlash(folder), "*.yaml"))
		if err != nil {
			return err
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("read kwok's stages: %w", err)
			}
			fmt.Fprintf(&all, "---\n%s\n", bytes.TrimSpace(text))
		}
	}
	if all.Len() == 0 {
		return fmt.Errorf("kwok %s has no stages in kustomize/stage", kwok.Version)
	}
	unfinished := filepath.Join(scratch, "stages.yaml")
	if err := os.WriteFile(unfinished, all.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, c.StagesPath(kwok))
}
