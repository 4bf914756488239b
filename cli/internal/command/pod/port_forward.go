package pod

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/stream"
)

// forwarder is the command port-forward.
type forwarder struct {
	*command.State

	addresses []string
	timeout   time.Duration
	mu        sync.Mutex // guards the output
}

func portForwardCommand(s *command.State) *cobra.Command {
	f := &forwarder{State: s}
	cmd := &cobra.Command{
		Use:   "port-forward TYPE/NAME [options] [LOCAL_PORT:]REMOTE_PORT [...[LOCAL_PORT_N:]REMOTE_PORT_N]",
		Short: "Forward local ports to a pod",
		Long: "Forward local ports to a pod, or to a pod that a service or workload selects.\n\n" +
			"When the pod of a service or workload is deleted or no longer ready, later connections go to another one.\n\n" +
			"A web page in a browser on this machine may send requests to a forwarded HTTP port, too. Only the program in the pod can " +
			"reject them, by their Origin and Host.",
		Example: "  anyctl port-forward svc/web 8080:80\n  anyctl port-forward deploy/web :http\n" +
			"  anyctl port-forward web-0 5000 6000 --address localhost,10.19.21.23",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return command.UsageError(cmd, "TYPE/NAME and list of ports are required for port-forward")
			}
			err := f.run(cmd.Context(), args[0], args[1:])
			if err != nil && cmd.Context().Err() != nil {
				return nil //nolint:nilerr // as in kubectl, an interrupt is the regular end
			}
			return err
		},
	}
	cmd.Flags().StringSliceVar(&f.addresses, "address", []string{"localhost"},
		"Addresses to listen on (comma separated): IP addresses, or localhost for 127.0.0.1 and ::1, of which one suffices")
	addTimeoutFlag(cmd, &f.timeout, streamTimeout)
	return cmd
}

// forwardedPort is a port to forward.
type forwardedPort struct {
	local  uint16 // 0 for any port
	remote string // port of the object, by number or name
	target uint16 // target port in the pod, for messages
}

func (f *forwarder) run(ctx context.Context, argument string, texts []string) error {
	addresses, err := parseAddresses(f.addresses)
	if err != nil {
		return err
	}
	found, err := findPod(ctx, f.State, argument, f.timeout, "attach to", compareForStreams)
	if err != nil {
		return err
	}
	var ports []forwardedPort
	for _, text := range texts {
		port, err := found.parsePort(text)
		if err != nil {
			return err
		}
		ports = append(ports, port)
	}
	if p := phase(found.pod); p != "Running" {
		return fmt.Errorf("unable to forward port because pod is not running. Current status=%s", p)
	}
	return f.forward(ctx, found, addresses, ports)
}

// forward listens on all ports and forwards connections until ctx is done.
func (f *forwarder) forward(ctx context.Context, found *found, addresses []listenAddress, ports []forwardedPort) error {
	dialer := &stream.PortDialer{Target: found.resource, OnError: func(client net.Addr, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.Errorf("error: forward connection of %s: %v", client, err)
	}}
	defer func() { _ = dialer.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listeners := f.listen(addresses, ports)
	if len(listeners) == 0 {
		return fmt.Errorf("unable to listen on any of the requested ports: %s", portsText(ports))
	}
	errs := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() {
			errs <- dialer.Forward(ctx, net.JoinHostPort(found.object.GetName(), l.port.remote), l)
		}()
	}
	err := <-errs
	cancel()
	for range len(listeners) - 1 {
		<-errs //nolint:errcheck // of the listeners that cancel has ended
	}
	return err
}

// portsText formats ports as kubectl does.
func portsText(ports []forwardedPort) string {
	var all []string
	for _, p := range ports {
		all = append(all, fmt.Sprintf("{%d %d}", p.local, p.target))
	}
	return "[" + strings.Join(all, " ") + "]"
}

// listenAddress is an address to listen on. localhost has two addresses; it suffices to listen on either.
type listenAddress struct {
	network, ip string
	isLocalhost bool
}

func parseAddresses(texts []string) ([]listenAddress, error) {
	var all []listenAddress
	add := func(a listenAddress) {
		if !slices.ContainsFunc(all, func(b listenAddress) bool { return a.ip == b.ip }) {
			all = append(all, a)
		}
	}
	for _, text := range texts {
		if text == "localhost" {
			add(listenAddress{"tcp4", "127.0.0.1", true})
			add(listenAddress{"tcp6", "::1", true})
			continue
		}
		ip := net.ParseIP(text)
		if ip == nil {
			return nil, fmt.Errorf("%s is not a valid IP", text)
		}
		network := "tcp6"
		if ip.To4() != nil {
			network = "tcp4"
		}
		add(listenAddress{network, text, false})
	}
	if len(all) == 0 {
		return nil, errors.New("you must specify at least 1 address")
	}
	return all, nil
}

// listen listens on all addresses and ports, and reports failed ports.
func (f *forwarder) listen(addresses []listenAddress, ports []forwardedPort) []*portListener {
	var all []*portListener
	for _, port := range ports {
		var opened []*portListener
		var failed []string
		for _, address := range addresses {
			listener, err := net.Listen(address.network, net.JoinHostPort(address.ip, strconv.Itoa(int(port.local))))
			if err != nil {
				failed = append(failed, fmt.Sprintf("unable to create listener: Error %v", err))
				continue
			}
			_, local, _ := net.SplitHostPort(listener.Addr().String())
			_ = f.Printf("Forwarding from %s -> %d\n", net.JoinHostPort(address.ip, local), port.target)
			opened = append(opened, &portListener{Listener: listener, port: port, local: local, forwarder: f})
			if port.local == 0 { // same port for the remaining addresses
				number, _ := strconv.ParseUint(local, 10, 16)
				port.local = uint16(number)
			}
		}
		required := slices.ContainsFunc(addresses, func(a listenAddress) bool { return !a.isLocalhost })
		if len(opened) == 0 || required && len(opened) < len(addresses) && !onlyLocalhostFailed(addresses, opened) {
			f.Errorf("Unable to listen on port %d: Listeners failed to create with the following errors: [%s]", port.local, strings.Join(failed, " "))
			for _, l := range opened {
				_ = l.Close()
			}
			continue
		}
		all = append(all, opened...)
	}
	return all
}

// onlyLocalhostFailed reports whether opened covers all addresses except localhost.
func onlyLocalhostFailed(addresses []listenAddress, opened []*portListener) bool {
	for _, a := range addresses {
		if a.isLocalhost {
			continue
		}
		if !slices.ContainsFunc(opened, func(l *portListener) bool { return l.isOn(a.ip) }) {
			return false
		}
	}
	return true
}

// portListener reports each accepted connection.
type portListener struct {
	net.Listener

	port      forwardedPort
	local     string
	forwarder *forwarder
}

func (l *portListener) isOn(ip string) bool {
	host, _, err := net.SplitHostPort(l.Addr().String())
	return err == nil && net.ParseIP(host).Equal(net.ParseIP(ip))
}

// Accept accepts a connection and prints a line.
func (l *portListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.forwarder.mu.Lock()
		defer l.forwarder.mu.Unlock()
		_ = l.forwarder.Printf("Handling connection for %s\n", l.local)
	}
	return conn, err
}
