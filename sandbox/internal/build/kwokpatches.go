package build

// kwokPatches mend kwok's kubectl exec, which loses the command's exit code,
// never tells the command that its standard input has ended, and on a terminal
// dies of a command without input, loses the end of what the command writes and
// makes the terminal nobody's, so that no signal of it reaches the command. To
// kubectl attach they give something to attach to: kwok only ever shows a log.
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

// withExitCode gives err the form in which ServeExec sees an exit code, which
// for a command that a signal ended is the one that shells give it.
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
		file: terminal,
		old:  "\tdefer func() {\n\t\t_ = pty.Close()\n\t\t_ = tty.Close()\n\t}()\n",
		new:  "",
	},
	{
		file: terminal,
		old:  kwokTunnel,
		new: `	// The command's output ends with EIO, when nobody has its terminal open.
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		var sink io.Writer = io.Discard
		if out != nil {
			sink = out
		}
		_, _ = io.Copy(sink, pty)
		_ = pty.Close() // hangs up on the command, where it is the client who has gone
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
		file: terminal,
		old:  "\tutilsnet \"sigs.k8s.io/kwok/pkg/utils/net\"\n",
		new:  "",
	},
	{
		file: "pkg/kwok/server/debugging_attach.go",
		old:  "\topts := &crilogs.LogOptions{\n",
		new: `	if in != nil || tty { // kwok does not know the pod, and so not whether it has them
		main := []string{"sh", "-c", "while IFS= read -r line; do eval \"$line\"; done"}
		err := s.ExecInContainer(ctx, name, uid, containerName, main, in, stdout, stderr, tty, resize, 0)
		if _, exited := err.(k8sexec.ExitError); exited {
			return nil // nobody who attaches is told the exit code
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

// terminal is the file in which kwok runs a command on one.
const terminal = "pkg/kwok/server/debugging_exec_other.go"

// kwokTunnel is how kwok carries a terminal's input and output.
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
