package pod

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/pod/debugpod"
	"github.com/anykind/anykind/cli/resource"
)

// debugOptions are the options of the command debug.
type debugOptions struct {
	session
	debugpod.Options

	finder              resource.Finder
	output              command.Output
	profile, customFile string
	replace             bool
	shareProcesses      bool
	// attaches is set to attach to the container, and attachSet if a flag says so.
	attaches, attachSet bool
}

func debugCommand(s *command.State) *cobra.Command {
	o := &debugOptions{session: session{State: s}, shareProcesses: true}
	o.Keep.InitContainers = true
	o.finder.Connection = s.Connection
	o.finder.Files.In = s.In
	cmd := &cobra.Command{
		Use:   "debug (POD | TYPE[[.VERSION].GROUP]/NAME) [ -- COMMAND [args...] ]",
		Short: "Create debugging sessions for troubleshooting workloads and nodes",
		Long: "Add an ephemeral container to a pod, create a changed copy of a pod (--copy-to), or create a pod in the namespaces of a node, " +
			"and attach to it with -it. With -o, the changed or created pod is printed.",
		Example: "  anyctl debug web-0 -it --image=busybox\n  anyctl debug web-0 -it --copy-to=web-debug --container=app -- sh\n" +
			"  anyctl debug web-0 --copy-to=web-debug --set-image='*=busybox'\n  anyctl debug node/node-1 -it --image=busybox --profile=sysadmin",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := o.complete(cmd, args)
			if err != nil {
				return err
			}
			return interrupted(cmd.Context(), o.run(cmd, names))
		},
	}
	o.addDebugFlags(cmd)
	return cmd
}

func (o *debugOptions) addDebugFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	o.output.AddFlags(fs)
	fs.StringSliceVarP(&o.finder.Files.Paths, "filename", "f", nil, "identifying the resource to debug")
	fs.BoolVar(&o.ArgsOnly, "arguments-only", false, "If specified, everything after -- will be passed to the new container as Args instead of Command.")
	fs.BoolVar(&o.attaches, "attach", false, "If true, wait for the container to start running, and then attach as if 'anyctl attach ...' were called.  Default false, unless '-i/--stdin' is set, in which case the default is true.")
	fs.StringVarP(&o.Container, "container", "c", "", "Container name to use for debug container.")
	fs.StringVar(&o.CopyTo, "copy-to", "", "Create a copy of the target Pod with this name.")
	fs.BoolVar(&o.replace, "replace", false, "When used with '--copy-to', delete the original Pod.")
	fs.StringToStringVar(&o.Env, "env", nil, "Environment variables to set in the container.")
	fs.StringVar(&o.Image, "image", "", "Container image to use for debug container.")
	const withCopy = "(This flag only works when used with '--copy-to')"
	fs.BoolVar(&o.Keep.Labels, "keep-labels", false, "If true, keep the original pod labels."+withCopy)
	fs.BoolVar(&o.Keep.Annotations, "keep-annotations", false, "If true, keep the original pod annotations."+withCopy)
	fs.BoolVar(&o.Keep.Liveness, "keep-liveness", false, "If true, keep the original pod liveness probes."+withCopy)
	fs.BoolVar(&o.Keep.Readiness, "keep-readiness", false, "If true, keep the original pod readiness probes."+withCopy)
	fs.BoolVar(&o.Keep.Startup, "keep-startup", false, "If true, keep the original startup probes."+withCopy)
	fs.BoolVar(&o.Keep.InitContainers, "keep-init-containers", true, "Run the init containers for the pod. Defaults to true."+withCopy)
	fs.StringToStringVar(&o.SetImages, "set-image", nil, "When used with '--copy-to', a list of name=image pairs for changing container images, similar to how 'anyctl set image' works.")
	fs.StringVar(&o.PullPolicy, "image-pull-policy", "", "The image pull policy for the container. If left empty, this value will not be specified by the client and defaulted by the server.")
	fs.BoolVarP(&o.Stdin, "stdin", "i", false, "Keep stdin open on the container(s) in the pod, even if nothing is attached.")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "If true, suppress informational messages.")
	fs.BoolVar(&o.SameNode, "same-node", false, "When used with '--copy-to', schedule the copy of target Pod on the same node.")
	fs.BoolVar(&o.shareProcesses, "share-processes", true, "When used with '--copy-to', enable process namespace sharing in the copy.")
	fs.StringVar(&o.Target, "target", "", "When using an ephemeral container, target processes in this container name.")
	fs.BoolVarP(&o.TTY, "tty", "t", false, "Allocate a TTY for the debugging container.")
	fs.StringVar(&o.profile, "profile", string(debugpod.General), `Options are "general", "baseline", "restricted", "netadmin" or "sysadmin". Defaults to "general"`)
	fs.StringVar(&o.customFile, "custom", "", "Path to a JSON or YAML file containing a partial container spec to customize built-in debug profiles.")
}

// complete completes and validates the options and returns the arguments before the command.
func (o *debugOptions) complete(cmd *cobra.Command, args []string) (names []string, err error) {
	names = args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 && len(args) > dash {
		names = args[:dash]
		o.Args = args[dash:]
	}
	o.attachSet = cmd.Flags().Changed("attach")
	o.attaches = o.attaches || !o.attachSet && o.Stdin
	if cmd.Flags().Changed("share-processes") {
		o.ShareProcesses = &o.shareProcesses
	}
	o.stdin = o.Stdin
	o.tty = o.TTY
	o.OnName = func(name string) {
		_ = o.message("Defaulting debug container name to %s.", name)
	}
	if err := o.output.Complete(o.Out, flags.DryRunNone); err != nil {
		return nil, err
	}
	if o.Profile, err = debugpod.ParseProfile(o.profile); err != nil {
		return nil, err
	}
	var unmodifiable error
	if o.customFile != "" {
		data, err := os.ReadFile(o.customFile)
		if err != nil {
			return nil, fmt.Errorf("must pass a container spec json file for custom profile: %w", err)
		}
		o.Custom, err = debugpod.ParseCustom(data)
		switch {
		case debugpod.IsUnmodifiable(err):
			unmodifiable = err
		case err != nil:
			return nil, fmt.Errorf("%s does not contain a valid container spec: %w", o.customFile, err)
		}
	}
	if err := o.validate(len(names)); err != nil {
		return nil, err
	}
	if unmodifiable == nil && o.Profile == debugpod.Legacy {
		o.Errorf("%s", `--profile=legacy is deprecated and planned to be removed in v1.39. It is recommended to specify other profile, for example "--profile=general".`)
	}
	return names, unmodifiable
}

func (o *debugOptions) validate(names int) error {
	if o.attaches && !o.output.IsDefault() {
		return errors.New("--output can't be used with attached containers (set --attach=false)")
	}
	if o.attaches && o.attachSet && o.Image == "" && o.Container == "" {
		return errors.New("you must specify --container or create a new container using --image in order to attach.")
	}
	if err := o.validateCopy(); err != nil {
		return err
	}
	if o.Image != "" && !isImage(o.Image) {
		return fmt.Errorf("invalid image name %q: %w", o.Image, errImage)
	}
	if names == 0 && o.finder.Files.IsEmpty() {
		return errors.New("NAME or filename is required for debug")
	}
	if !slices.Contains([]string{"", "Always", "IfNotPresent", "Never"}, o.PullPolicy) {
		return fmt.Errorf("invalid image pull policy: %s", o.PullPolicy)
	}
	for name, image := range o.SetImages {
		if !isImage(image) {
			return fmt.Errorf("invalid image name %q for container %q: %w", image, name, errImage)
		}
	}
	if o.Target != "" {
		if o.CopyTo != "" {
			return errors.New("--target is incompatible with --copy-to. Use --share-processes instead.")
		}
		_ = o.message("Targeting container %q. If you don't see processes from this container it may be because the container runtime doesn't support this feature.", o.Target)
	}
	if o.TTY && !o.Stdin {
		return errors.New("-i/--stdin is required for containers with -t/--tty=true")
	}
	return nil
}

// message prints a line unless --quiet is set, with -o to the standard error stream.
func (o *debugOptions) message(format string, args ...any) error {
	switch {
	case o.quiet:
	case o.output.IsDefault():
		return o.Printf(format+"\n", args...)
	default:
		o.Errorf(format, args...)
	}
	return nil
}

func (o *debugOptions) validateCopy() error {
	switch {
	case o.CopyTo != "" && o.Image == "" && len(o.SetImages) == 0 && len(o.Args) == 0:
		return errors.New("you must specify --image, --set-image or command arguments.")
	case o.CopyTo != "" && len(o.Args) > 0 && o.Container == "" && o.Image == "":
		return errors.New("you must specify an existing container or a new image when specifying args.")
	case o.CopyTo != "":
		return nil
	case o.replace:
		return errors.New("--replace may only be used with --copy-to.")
	case o.SameNode:
		return errors.New("--same-node may only be used with --copy-to.")
	case len(o.SetImages) > 0:
		return errors.New("--set-image may only be used with --copy-to.")
	case o.Image == "":
		return errors.New("you must specify --image when not using --copy-to.")
	}
	return nil
}

var errImage = errors.New("invalid reference format")

// isImage reports whether a text has the form of an image: [HOST[:PORT]/]PATH[:TAG][@DIGEST].
func isImage(text string) bool {
	const label = `[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?`
	const host = `(?:` + label + `(?:\.` + label + `)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/`
	const step = `[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*`
	const digest = `@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[[:xdigit:]]{32,}`
	return regexp.MustCompile(`^(?:` + host + `)?` + step + `(?:/` + step + `)*(?::\w[\w.-]{0,127})?(?:` + digest + `)?$`).MatchString(text)
}
