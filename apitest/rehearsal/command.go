package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/apitest"
)

// stopDelay is the time of a process to end after an interrupt, before it is killed.
const stopDelay = 10 * time.Second

// Command returns a controller that runs a program. KUBECONFIG is the path of a kubeconfig with all rights, KUBERNETES_MASTER the URL of
// the server. The files ca.crt, tls.crt and tls.key in the folder of the kubeconfig are for programs with flags in place of a kubeconfig. The
// environment variables of a pod are removed. The output of the program is written to output, and discarded if output is nil. At the
// end the program and its children are interrupted, and killed after 10 seconds.
func Command(output io.Writer, name string, args ...string) Controller {
	return func(ctx context.Context, server *apitest.Server) error {
		folder, err := os.MkdirTemp("", "rehearsal-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		if err := writeCredentials(folder, server); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Stdout = output
		cmd.Stderr = output
		cmd.Env = append(slices.DeleteFunc(os.Environ(), isOfCluster), "KUBECONFIG="+filepath.Join(folder, "kubeconfig"),
			"KUBECACHEDIR="+filepath.Join(folder, "cache"), "KUBERNETES_MASTER="+server.URL)
		cmd.WaitDelay = stopDelay
		killGroup := interruptGroup(cmd)
		err = cmd.Run()
		killGroup()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("run %s: %w", strings.Join(cmd.Args, " "), err)
		}
		return errors.New("the program has ended with exit code 0 before it was quiet")
	}
}

func writeCredentials(folder string, server *apitest.Server) error {
	config, err := server.KubeconfigData()
	if err != nil {
		return err
	}
	const admins = "system:masters"
	certificate, key, err := server.ClientCertificate("rehearsal", admins)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"kubeconfig": config, "ca.crt": server.Config().CAData, "tls.crt": certificate, "tls.key": key,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// isOfCluster reports whether a variable makes a program use a different cluster.
func isOfCluster(variable string) bool {
	for _, prefix := range []string{"KUBECONFIG=", "KUBECACHEDIR=", "KUBERNETES_MASTER=", "KUBERNETES_SERVICE_"} {
		if strings.HasPrefix(variable, prefix) {
			return true
		}
	}
	return false
}
