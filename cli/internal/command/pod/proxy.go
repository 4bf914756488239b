package pod

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/transport"
)

const (
	defaultProxyPort = 8001
	// headerTimeout is the timeout for reading the header of a request.
	headerTimeout = 30 * time.Second
)

// proxyOptions are the options of the command proxy.
type proxyOptions struct {
	*command.State

	port                int
	address, unixSocket string
	apiPrefix           string
	filter              proxyFilter
	disableFilter       bool
	appendServerPath    bool
	// www is a folder with files served under wwwPrefix, or "".
	www, wwwPrefix string
}

func proxyCommand(s *command.State) *cobra.Command {
	o := &proxyOptions{State: s, filter: defaultProxyFilter()}
	cmd := &cobra.Command{
		Use:   "proxy [--port=PORT] [--api-prefix=prefix]",
		Short: "Run a proxy to the API server",
		Long: "Serve the API of the server to programs on this machine, with the user's credential.\n\n" +
			"Requests for other hosts than localhost, and those that exec and attach, are rejected unless flags permit them.\n\n" +
			"A browser on this machine sends the requests of any web page to localhost. The proxy rejects requests whose Origin is " +
			"not its own, and those with Sec-Fetch-Site: cross-site or same-site, unless --accept-origins matches their Origin. " +
			"Scripts of accepted origins may read the responses (CORS): the proxy responds to their preflight requests. " +
			"Pages of --www and of services behind the proxy have the proxy's own origin: they may use the whole API.",
		Example: "  anyctl proxy --port=8011\n  anyctl proxy --api-prefix=/custom/\n  anyctl proxy --unix-socket=/tmp/api.sock\n" +
			"  anyctl proxy --accept-origins='^http://localhost:3000$'",
		Args:                  cobra.NoArgs,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.Flags().Changed("port"))
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.apiPrefix, "api-prefix", "/", "Prefix to serve the proxied API under")
	fs.StringVarP(&o.www, "www", "w", "", "Also serve static files from the given directory under the specified prefix.")
	fs.StringVarP(&o.wwwPrefix, "www-prefix", "P", "/static/", "Prefix to serve static files under, if static file directory is specified.")
	fs.StringVar(&o.filter.acceptPaths, "accept-paths", o.filter.acceptPaths, "Regular expressions, separated by commas, of paths to accept")
	fs.StringVar(&o.filter.rejectPaths, "reject-paths", o.filter.rejectPaths, "Regular expressions of paths to reject, even if accepted by --accept-paths")
	fs.StringVar(&o.filter.acceptHosts, "accept-hosts", o.filter.acceptHosts, "Regular expressions of hosts to accept")
	fs.StringVar(&o.filter.acceptOrigins, "accept-origins", o.filter.acceptOrigins,
		"Regular expressions of origins, such as ^http://localhost:3000$, whose web pages may use the API in addition to the proxy's own")
	fs.StringVar(&o.filter.rejectMethods, "reject-methods", o.filter.rejectMethods, "Regular expressions of HTTP methods to reject")
	fs.IntVarP(&o.port, "port", "p", defaultProxyPort, "The port to serve on; 0 picks a random one")
	fs.StringVar(&o.address, "address", "127.0.0.1", "The IP address to serve on")
	fs.StringVarP(&o.unixSocket, "unix-socket", "u", "", "Unix socket to serve on")
	fs.BoolVar(&o.disableFilter, "disable-filter", false,
		"Accept all requests. This is dangerous: web sites in a browser on this machine may then use the credential")
	fs.BoolVar(&o.appendServerPath, "append-server-path", false, "Put the path of the server's URL before that of each request")
	return cmd
}

func (o *proxyOptions) run(ctx context.Context, portSet bool) error {
	if portSet && o.port != defaultProxyPort && o.unixSocket != "" {
		return errors.New("cannot set --unix-socket and --port at the same time")
	}
	if err := o.filter.compile(); err != nil {
		return err
	}
	if o.www != "" {
		if info, err := os.Stat(o.www); err != nil {
			return fmt.Errorf("--www: %w", err)
		} else if !info.IsDir() {
			return fmt.Errorf("--www %s: not a folder", o.www)
		}
	}
	conn, err := o.Connection.Conn(ctx)
	if err != nil {
		return err
	}
	server, err := url.Parse(conn.Server())
	if err != nil {
		return err
	}
	if !o.appendServerPath && strings.Trim(server.Path, "/") != "" {
		o.Errorf("Warning: the server's URL has the path %s: use --append-server-path to put it before that of each request", server.Path)
	}
	if o.disableFilter && o.unixSocket == "" {
		o.Errorf("Warning: Request filter disabled, your proxy is vulnerable to XSRF attacks, please be cautious")
	}
	listener, err := o.listen(ctx)
	if err != nil {
		return errors.New(err.Error()) // hides the type: not a failure to reach the server
	}
	if err := o.Printf("Starting to serve on %s\n", o.addressText(listener)); err != nil {
		_ = listener.Close()
		return err
	}
	return serve(ctx, listener, o.handler(conn, server))
}

func (o *proxyOptions) addressText(listener net.Listener) string {
	if o.unixSocket != "" {
		return o.unixSocket
	}
	return listener.Addr().String()
}

// serve serves HTTP until ctx is done.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(listener)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (o *proxyOptions) listen(ctx context.Context) (net.Listener, error) {
	if o.unixSocket != "" {
		return listenUnix(ctx, o.unixSocket)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(o.address, strconv.Itoa(o.port)))
}

// listenUnix listens on a Unix socket with mode 0600. It creates the socket in a private folder, because the mode can be set only
// after the socket exists, and then renames it to path.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("listen on %s: the file exists and is not a socket (remove it)", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), ".anyctl-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	hidden := filepath.Join(folder, "s")
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", hidden)
	if err != nil {
		return nil, err
	}
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false)
	}
	if err = os.Chmod(hidden, 0o600); err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	return &unixListener{Listener: listener, path: path}, nil
}

// unixListener removes its socket on Close.
type unixListener struct {
	net.Listener

	path string
}

// Close removes the socket and closes the listener.
func (l *unixListener) Close() error {
	_ = os.Remove(l.path)
	return l.Listener.Close()
}

// handler returns the proxy's handler.
func (o *proxyOptions) handler(conn *transport.Conn, server *url.URL) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport:     conn,
		FlushInterval: -1, // forwards watch events and log lines without delay
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme = server.Scheme
			r.Out.URL.Host = server.Host
			r.Out.Host = ""
			if o.appendServerPath {
				joined := server.JoinPath(r.In.URL.EscapedPath())
				r.Out.URL.Path = joined.Path
				r.Out.URL.RawPath = joined.RawPath
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if !o.disableFilter && o.filter.acceptedOrigin(r.Request.Header) != "" {
				r.Header.Del(allowOrigin) // browsers reject two headers: the filter's and the server's
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				o.Errorf("error: proxy %s %s: %v", r.Method, r.URL.Path, err)
			}
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	handler := rejectCredentials(proxy)
	if !o.disableFilter {
		handler = o.filter.wrap(handler)
	}
	mux := http.NewServeMux() // redirects to the clean path, so the filter cannot be bypassed
	if o.www != "" {
		under := strings.TrimSuffix("/"+strings.Trim(o.wwwPrefix, "/"), "/")
		files := http.StripPrefix(under, http.FileServer(http.Dir(o.www)))
		if !o.disableFilter {
			files = o.filter.wrap(files)
		}
		mux.Handle(under+"/", files)
	}
	prefix := "/" + strings.Trim(o.apiPrefix, "/")
	if prefix == "/" {
		mux.Handle("/", handler)
		return rejectConnect(mux)
	}
	stripped := handler
	if !strings.HasPrefix(prefix, "/api") { // as in kubectl: --api-prefix=/api/ serves a part of the API
		stripped = http.StripPrefix(prefix, handler)
	}
	mux.Handle(prefix+"/", stripped)
	return rejectConnect(mux)
}

// rejectCredentials rejects requests with credentials or impersonation headers: the proxy authenticates with its own credential.
func rejectCredentials(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if name == "Authorization" || strings.HasPrefix(name, "Impersonate-") {
				http.Error(w, "header "+name+": not allowed, as the proxy authenticates all requests", http.StatusBadRequest)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// rejectConnect rejects CONNECT, because ServeMux does not clean its paths.
func rejectConnect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}
