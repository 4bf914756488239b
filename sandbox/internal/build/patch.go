package build

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// patch is an edit to one file of a copy of a module, made to build it.
type patch struct {
	file     string // in the module, with slashes
	old, new string
}

// kwokPatches mend kwok's kubectl exec, which loses the command's exit code
// and never tells the command that its standard input has ended.
var kwokPatches = []patch{
	{
		file: "pkg/utils/exec/exec.go",
		old:  "_, _ = io.Copy(inPipe, opt.In)\n",
		new:  "_, _ = io.Copy(inPipe, opt.In)\n_ = inPipe.Close()\n",
	},
	{
		file: "pkg/kwok/server/debugging_exec.go",
		old:  "\tif tty {\n\t\treturn s.execInContainerWithTTY(ctx, cmd, in, stdout, resize)\n\t}\n\n\treturn s.execInContainer(ctx, cmd, in, stdout, stderr)\n}\n",
		new: `	if tty {
		return withExitCode(s.execInContainerWithTTY(ctx, cmd, in, stdout, resize))
	}
	return withExitCode(s.execInContainer(ctx, cmd, in, stdout, stderr))
}

// withExitCode gives err the form in which ServeExec sees an exit code.
func withExitCode(err error) error {
	var exit interface{ ExitCode() int }
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return k8sexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}
`,
	},
	{
		file: "pkg/kwok/server/debugging_exec.go",
		old:  "import (\n\t\"context\"\n",
		new:  "import (\n\t\"context\"\n\t\"errors\"\n",
	},
	{
		file: "pkg/kwok/server/debugging_exec.go",
		old:  "\t\"k8s.io/cri-streaming/pkg/streaming/remotecommand\"\n",
		new:  "\t\"k8s.io/cri-streaming/pkg/streaming/remotecommand\"\n\tk8sexec \"k8s.io/utils/exec\"\n",
	},
}

// patchedCopy copies the module in moduleDir into scratch and applies patches to
// the copy. (go build -overlay refuses to replace files in the module cache.)
func patchedCopy(patches []patch, moduleDir, scratch string) (string, error) {
	dir := filepath.Join(scratch, "patched")
	if err := os.CopyFS(dir, os.DirFS(moduleDir)); err != nil {
		return "", fmt.Errorf("copying a module to patch it: %w", err)
	}
	for _, p := range patches {
		path := filepath.Join(dir, filepath.FromSlash(p.file))
		text, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("patching %s: %w", p.file, err)
		}
		if strings.Count(string(text), p.old) != 1 {
			return "", fmt.Errorf("patching %s: the lines to change are not there; the patch is for another version", p.file)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), p.old, p.new, 1)), 0o644); err != nil {
			return "", fmt.Errorf("patching %s: %w", p.file, err)
		}
	}
	return dir, nil
}
