package kubeconfig_test

func userCases() []kubeconfigCase {
	files := with(map[string]string{
		"token": secret + "\n", "empty": "", "u.crt": "<CERT>", "u.key": "<KEY>", "wrong.key": "<WRONGKEY>",
	})
	const certificate = "client-certificate-data: <CERT64>, client-key-data: <KEY64>"
	return []kubeconfigCase{
		one("token", config(https, "token: "+secret)),
		one("token file", config(https, "tokenFile: token"), files),
		one("token file and token", config(https, "tokenFile: token, token: other"), files),
		one("token and a missing file", config(https, "tokenFile: missing, token: "+secret), files),
		one("a missing token file", config(https, "tokenFile: missing"), rejected),
		one("an empty token file", config(https, "tokenFile: empty"), files, rejected),
		one("basic", config(https, "username: ann, password: "+secret)),
		one("a name without a password", config(https, "username: ann")),
		one("a password without a name", config(https, "password: "+secret)),
		one("token and basic", config(https, "token: "+secret+", username: ann"), rejected),
		one("token and a password", config(https, "token: "+secret+", password: "+secret), rejected),
		one("token file and basic", config(https, "tokenFile: token, username: ann"), files, rejected),
		one("certificate inline", config(https, certificate)),
		one("certificate in files", config(https, "client-certificate: u.crt, client-key: ./u.key"), files),
		one("certificate in a file, key inline", config(https, "client-certificate: u.crt, client-key-data: <KEY64>"), files),
		one("certificate inline, key in a file", config(https, "client-certificate-data: <CERT64>, client-key: u.key"), files),
		one("certificate and token", config(https, certificate+", token: "+secret)),
		one("certificate both ways", config(https, certificate+", client-certificate: u.crt"), files, rejected),
		one("key both ways", config(https, certificate+", client-key: u.key"), files, rejected),
		one("certificate without a key", config(https, "client-certificate-data: <CERT64>"), rejected),
		one("key without a certificate", config(https, "client-key-data: <KEY64>, token: "+secret)),
		one("another's key inline", config(https, "client-certificate-data: <CERT64>, client-key-data: <WRONGKEY64>"), rejected),
		one("another's key in a file", config(https, "client-certificate: u.crt, client-key: wrong.key"), files,
			differs("client-go loads a pair of files when the server asks for it, and then the handshake fails")),
		one("a missing certificate file", config(https, "client-certificate: missing, client-key: u.key"), files, rejected),
		one("a missing key file", config(https, "client-certificate: u.crt, client-key: missing"), files, rejected),
		one("impersonation", config(https, "token: "+secret+", as: bob")),
		one("impersonation with everything", config(https, "as: bob, as-uid: '7', as-groups: [staff, dev], as-user-extra: {example.org/Scopes: [a, b], empty: []}")),
		one("impersonation of groups alone", config(https, "as-groups: [staff]"), rejected),
		one("impersonation of a uid alone", config(https, "as-uid: '7'"), rejected),
		one("user extensions", config(https, "token: "+secret+", extensions: [{name: a, extension: b}]")),
	}
}

func execCases() []kubeconfigCase {
	const v1, v1beta1 = "apiVersion: client.authentication.k8s.io/v1", "apiVersion: client.authentication.k8s.io/v1beta1"
	exec := func(fields string) string { return "exec: {command: login, " + fields + "}" }
	return []kubeconfigCase{
		one("exec v1", config(https, exec(v1+", interactiveMode: Never, args: [a, "+secret+"], env: [{name: A, value: "+secret+"}]"))),
		one("exec v1beta1 without a mode", config(https, exec(v1beta1))),
		one("exec v1beta1 with a mode", config(https, exec(v1beta1+", interactiveMode: Always"))),
		one("exec v1 without a mode", config(https, exec(v1)), rejected),
		one("exec with a bad mode", config(https, exec(v1+", interactiveMode: never")), rejected),
		one("exec without apiVersion", config(https, exec("interactiveMode: Never")), rejected),
		one("exec of v1alpha1", config(https, exec("apiVersion: client.authentication.k8s.io/v1alpha1")), rejected),
		one("exec of an unknown apiVersion", config(https, exec("apiVersion: v9, interactiveMode: Never")), rejected),
		one("exec without a command", config(https, "exec: {"+v1+", interactiveMode: Never}"), rejected),
		one("exec with a nameless variable", config(https, exec(v1+", interactiveMode: Never, env: [{value: "+secret+"}]")), rejected),
		one("exec of a relative path", config(https, "exec: {command: bin/login, "+v1beta1+"}")),
		one("exec of a path above", config(https, "exec: {command: ../login, "+v1beta1+"}")),
		one("exec with a hint that moves the cursor", config(https, exec(v1beta1+`, installHint: "\x1b[31mred\tand\n\u00e9"`))),
		one("exec with cluster info", config(https+", extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: a, n: 1}}]",
			exec(v1beta1+", provideClusterInfo: true"))),
		one("exec and token", config(https, "token: "+secret+", "+exec(v1beta1))),
		one("exec and basic", config(https, "username: ann, password: "+secret+", "+exec(v1beta1))),
		one("exec and certificate", config(https, "client-certificate-data: <CERT64>, client-key-data: <KEY64>, "+exec(v1beta1))),
		one("exec over http", config("server: 'http://10.0.0.1'", exec(v1beta1))),
		one("exec and auth-provider", config(https, exec(v1beta1)+", auth-provider: {name: oidc, config: {idp-issuer-url: 'https://i', client-id: c}}"), rejected),
	}
}

func authProviderCases() []kubeconfigCase {
	// {"alg":"none"}, {"exp":4000000000}
	const idToken = ", id-token: eyJhbGciOiJub25lIn0.eyJleHAiOjQwMDAwMDAwMDB9.YQ"
	const oidc = "auth-provider: {name: oidc, config: {idp-issuer-url: 'https://issuer.example', client-id: c"
	return []kubeconfigCase{
		one("oidc", config(https, oidc+", client-secret: "+secret+idToken+", refresh-token: "+secret+"}}")),
		one("oidc and token", config(https, "token: "+secret+", "+oidc+idToken+"}}")),
		one("oidc and certificate", config(https, "client-certificate-data: <CERT64>, client-key-data: <KEY64>, "+oidc+idToken+"}}")),
		one("oidc without issuer", config(https, "auth-provider: {name: oidc, config: {client-id: c}}"), rejected),
		one("oidc without client", config(https, "auth-provider: {name: oidc, config: {idp-issuer-url: 'https://i'}}"), rejected),
		one("oidc without config", config(https, "auth-provider: {name: oidc}"), rejected),
		one("gcp", config(https, "auth-provider: {name: gcp, config: {access-token: "+secret+"}}"), rejected),
		one("azure", config(https, "auth-provider: {name: azure}"), rejected),
		one("an unknown auth-provider", config(https, "auth-provider: {name: mine}"), rejected),
		one("an unknown auth-provider over http", config("server: 'http://10.0.0.1'", "auth-provider: {name: mine}")),
	}
}
