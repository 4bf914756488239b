package oracle

import "strings"

// configCases are the lines of config.
func configCases() []oracleCase {
	cases := []oracleCase{
		{line: "config get-contexts", readOnly: true},
		{line: "config get-contexts admin --no-headers", readOnly: true},
		{line: "config get-contexts -o name", readOnly: true},
		{line: "config get-contexts admin missing", readOnly: true, fails: true},
		{line: "config get-clusters", readOnly: true},
		{line: "config get-users", readOnly: true},
		{line: "config current-context", readOnly: true},
		{line: "config current-context --kubeconfig=empty", readOnly: true, fails: true},
		{line: "config use-context token", readOnly: true},
		{line: "config use-context missing", readOnly: true, fails: true},
		{line: "config set-context --current --namespace=other", readOnly: true},
		{line: "config set-context new --cluster=sandbox --user=token", readOnly: true},
		{line: "config set-context", readOnly: true, fails: true},
		{line: "config view", readOnly: true},
		{line: "config view --minify --context=token", readOnly: true},
		{line: "config view --merge=false", fails: true},
		{line: "config view --merge=false --kubeconfig=full --minify"},
		{line: "config view --merge=false --kubeconfig=none", fails: true},
		{line: "config view --merge --kubeconfig=full --minify --raw"},
		{line: "config view --kubeconfig=full --minify --flatten"},
		{line: "config view --kubeconfig=inline --flatten"},
		{line: "config view --kubeconfig=inline --flatten --raw"},
		{line: "config view --kubeconfig=full --minify --context=missing", fails: true},
		{line: "config view --raw -o jsonpath={.users[*].name}", readOnly: true},
		{line: "config view --kubeconfig=full", readOnly: true, differs: &difference{
			[]string{"stdout"}, "kubectl shows the environment of credential plugins; anyctl hides it, as it may have secrets",
		}},
		{line: "config view --kubeconfig=empty", readOnly: true},
		{line: "config delete-context token", readOnly: true},
		{line: "config delete-context missing", readOnly: true, fails: true},

		{line: "config set current-context two --kubeconfig=full"},
		{line: "config set clusters.a.server https://new.example.com --kubeconfig=full"},
		{line: "config set clusters.10.1.2.3.insecure-skip-tls-verify true --kubeconfig=full"},
		{line: "config set contexts.one.namespace other --kubeconfig=full"},
		{line: "config set users.cert.client-key-data a2V5 --kubeconfig=full"},
		{line: "config set users.cert.client-key-data key --set-raw-bytes --kubeconfig=full"},
		{line: "config set users.token.token other --kubeconfig=full"},
		{line: "config set clusters.b.certificate-authority pki/other.crt --kubeconfig=full"},
		{line: "config set contexts.new.user ann"},
		{line: "config set clusters.a.insecure-skip-tls-verify maybe --kubeconfig=full", fails: true},
		{line: "config set users.cert.client-key-data '***' --kubeconfig=full", fails: true},
		{line: "config set nonsense x", fails: true, differs: goTypes()},
		{line: "config set contexts.one x --kubeconfig=full", fails: true, differs: goTypes()},
		{line: "config set users.exec.as-groups x --kubeconfig=full", fails: true, differs: goTypes()},
		{line: "config set current-context ''", fails: true},
		{line: "config set current-context", fails: true, differs: allHelp()},

		{line: "config unset current-context --kubeconfig=full"},
		{line: "config unset contexts.one.namespace --kubeconfig=full"},
		{line: "config unset users.token.token --kubeconfig=full"},
		{line: "config unset users.exec --kubeconfig=full"},
		{line: "config unset clusters --kubeconfig=full"},
		{line: "config unset contexts.missing --kubeconfig=full"},
		{line: "config unset contexts. --kubeconfig=full"},
		{line: "config unset contexts.missing.namespace --kubeconfig=full", fails: true},
		{line: "config unset nonsense", fails: true, differs: goTypes()},
		{line: "config unset", fails: true, differs: allHelp()},

		{line: "config set-context one --kubeconfig=full --cluster=b --user=exec -n other"},
		{line: "config set-context --current --kubeconfig=empty", fails: true},
		{line: "config set-context one --current", fails: true},
		{line: "config set-context '' --namespace=other --kubeconfig=full", fails: true},
		{line: "config set-cluster new --server=https://new.example.com --kubeconfig=full"},
		{line: "config set-cluster b --server=https://new.example.com --kubeconfig=full"},
		{line: "config set-cluster b --insecure-skip-tls-verify --kubeconfig=full"},
		{line: "config set-cluster a --certificate-authority=ca.crt --kubeconfig=full"},
		{line: "config set-cluster a --certificate-authority=/etc/ca.crt --tls-server-name=x --proxy-url=http://p.example.com --kubeconfig=full"},
		{line: "config set-cluster a --certificate-authority=ca.crt --embed-certs --kubeconfig=full"},
		{line: "config set-cluster new --server=https://new.example.com --kubeconfig=none/new"},
		{line: "config get-contexts --kubeconfig=none"},
		{line: "config view --kubeconfig=none"},
		{line: "config set-cluster a --certificate-authority=ca.crt --insecure-skip-tls-verify", fails: true},
		{line: "config set-cluster a --certificate-authority=missing --embed-certs", fails: true},
		{line: "config set-cluster a --embed-certs", fails: true},
		{line: "config set-cluster", fails: true, differs: allHelp()},

		{line: "config set-credentials token --token=other --kubeconfig=full"},
		{line: "config set-credentials token --username=ann --password=x --kubeconfig=full"},
		{line: "config set-credentials basic --token=other --kubeconfig=full"},
		{line: "config set-credentials new --client-certificate=ca.crt --client-key=/k.pem --kubeconfig=full"},
		{line: "config set-credentials cert --client-certificate=ca.crt --client-key=ca.crt --embed-certs --kubeconfig=full"},
		{line: "config set-credentials new --auth-provider=oidc --auth-provider-arg=client-id=x --auth-provider-arg=client-secret=y --kubeconfig=full"},
		{line: "config set-credentials exec --exec-arg=c --exec-env=X=other --exec-env=Y=new --kubeconfig=full"},
		{line: "config set-credentials exec --exec-env=X- --exec-interactive-mode=Always --exec-provide-cluster-info --kubeconfig=full"},
		{line: "config set-credentials new --exec-command=login --exec-api-version=client.authentication.k8s.io/v1 --kubeconfig=full"},
		{line: "config set-credentials token --exec-arg=ignored --kubeconfig=full"},
		{line: "config set-credentials a --token=x --username=y", fails: true},
		{line: "config set-credentials a --exec-interactive-mode=Sometimes", fails: true},
		{line: "config set-credentials a --exec-env==x", fails: true, differs: allHelp()},
		{line: "config set-credentials a --embed-certs", fails: true},
		{line: "config set-credentials a --client-key=missing --embed-certs", fails: true},
		{line: "config set-credentials", fails: true, differs: allHelp()},

		{line: "config rename-context one new --kubeconfig=full"},
		{line: "config rename-context two new --kubeconfig=full"},
		{line: "config rename-context one two --kubeconfig=full", fails: true},
		{line: "config rename-context missing new --kubeconfig=full", fails: true},
		{line: "config rename-context one", fails: true, differs: allHelp()},
		{line: "config delete-cluster a --kubeconfig=full"},
		{line: "config delete-cluster missing --kubeconfig=full", fails: true},
		{line: "config delete-user exec --kubeconfig=full"},
		{line: "config delete-user missing --kubeconfig=full", fails: true},
		{line: "config delete-user", fails: true},
	}
	for i := range cases {
		c := &cases[i]
		c.readOnly = true // of the cluster: kubeconfigs are each run's own
		c.files = map[string]string{"full": fullConfig, "empty": emptyConfig, "ca.crt": "certificate", "inline": inlineConfig}
		c.kubeconfigs = []string{"$KUBECONFIG"}
		if _, name, found := strings.Cut(c.line, "--kubeconfig="); found {
			c.kubeconfigs = []string{strings.Fields(name)[0]}
		}
	}
	return cases
}

// allHelp explains the output of wrong arguments.
func allHelp() *difference {
	return &difference{[]string{"stdout", "stderr"}, "kubectl prints all of the command's help, anyctl refers to it"}
}

// goTypes explains errors with kubectl's Go types.
func goTypes() *difference {
	return &difference{[]string{"stderr"}, "kubectl prints its Go types"}
}

const emptyConfig = "apiVersion: v1\nkind: Config\n"

// inlineConfig names a file.
const inlineConfig = `
apiVersion: v1
kind: Config
clusters:
- name: a
  cluster: {server: "https://a.example.com", certificate-authority: ca.crt}
users:
- name: token
  user: {token: a-token}
`

// fullConfig has every kind of credential.
const fullConfig = `
apiVersion: v1
kind: Config
current-context: one
clusters:
- name: a
  cluster: {server: "https://a.example.com", insecure-skip-tls-verify: true, proxy-url: "http://proxy.example.com:8080"}
- name: b
  cluster: {server: "https://b.example.com", certificate-authority: /ca.crt, tls-server-name: b}
contexts:
- name: one
  context: {cluster: a, user: token, namespace: shop}
- name: two
  context: {cluster: b, user: exec, extensions: [{name: x, extension: {last: 1}}]}
users:
- name: token
  user: {token: a-token}
- name: basic
  user: {username: ann, password: a-password}
- name: cert
  user: {client-certificate: /c.crt, client-key: /c.key, as: bob, as-groups: [g]}
- name: exec
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: login, args: [a, b], env: [{name: X, value: plain}], interactiveMode: Never}
`
