package flags

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/anykind/anykind/unstructured/manifest"
)

// maxKustomization bounds the output of kustomize, as a file of a URL is bounded.
const maxKustomization = 64 << 20

// readKustomization runs kustomize or kubectl on a folder and returns the objects of its output.
func readKustomization(ctx context.Context, folder string) ([]*manifest.Object, error) {
	name, args, err := kustomizeCommand(folder)
	if err != nil {
		return nil, err
	}
	runCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(runCtx, name, args...)
	cmd.WaitDelay = time.Second // for children that keep the streams open
	output := &boundedBuffer{limit: maxKustomization, onExceeded: cancel}
	problems := &boundedBuffer{limit: maxKustomization, onExceeded: cancel}
	cmd.Stdout = output
	cmd.Stderr = problems
	if err := cmd.Run(); err != nil {
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case output.isExceeded || problems.isExceeded:
			return nil, fmt.Errorf("read kustomization %s: the output of %s is larger than %d bytes", folder, name, maxKustomization)
		}
		text := strings.TrimSpace(problems.buffer.String())
		text = strings.TrimPrefix(strings.TrimPrefix(text, "error: "), "Error: ")
		if text == "" {
			text = err.Error()
		}
		return nil, fmt.Errorf("read kustomization %s: %s: %s", folder, name, text)
	}
	return manifest.Decode(folder, &output.buffer)
}

// kustomizeCommand returns the command line for a folder. exec.LookPath rejects programs of the current folder.
func kustomizeCommand(folder string) (name string, args []string, err error) {
	for _, candidate := range []struct {
		name string
		args []string
	}{{"kustomize", []string{"build", "--", folder}}, {"kubectl", []string{"kustomize", "--", folder}}} {
		if path, err := exec.LookPath(candidate.name); err == nil {
			return path, candidate.args, nil
		}
	}
	return "", nil, errors.New("read kustomization " + folder + ": neither kustomize nor kubectl is in PATH (install one of them, or write the objects to a file for -f)")
}

// boundedBuffer fails a write that exceeds its limit. onExceeded ends the writing program: it would wait for a reader forever.
// The buffer is no embedded field: io.Copy would call its ReadFrom, which has no limit.
type boundedBuffer struct {
	buffer     bytes.Buffer
	limit      int
	onExceeded func()
	isExceeded bool
}

// Write implements io.Writer.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.buffer.Len()+len(p) > b.limit {
		b.isExceeded = true
		b.onExceeded()
		return 0, fmt.Errorf("more than %d bytes", b.limit)
	}
	return b.buffer.Write(p)
}
