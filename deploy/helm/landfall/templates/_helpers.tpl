{{- define "landfall.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "landfall.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "landfall.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "landfall.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "landfall.selector" -}}
app.kubernetes.io/name: {{ include "landfall.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "landfall.labels" -}}
{{ include "landfall.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "landfall.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "landfall.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "landfall.claim" -}}
{{- default (printf "%s-data" (include "landfall.fullname" .)) .Values.persistence.existingClaim -}}
{{- end -}}

{{/* The component that serves clients. */}}
{{- define "landfall.front" -}}
{{- if eq .Values.mode "cluster" }}api{{ else }}server{{ end -}}
{{- end -}}

{{/* What every installation must give, said before anything is made. */}}
{{- define "landfall.check" -}}
{{- if not (has .Values.mode (list "single" "cluster")) -}}
{{- fail (printf "mode is %q: it must be single or cluster" .Values.mode) -}}
{{- end -}}
{{- if not .Values.existingSecret -}}
{{- fail "existingSecret is empty: make a Secret with JWT_SECRET and what else values.yaml says there, and name it" -}}
{{- end -}}
{{- range $name, $value := .Values.settings -}}
{{- if has $name (list "JWT_SECRET" "SECRET_KEY" "OIDC_CLIENT_SECRET" "METRICS_TOKEN" "DATABASE_URL" "EMBEDDINGS_API_KEY") -}}
{{- fail (printf "settings.%s is a secret: put it into the Secret that existingSecret names" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The pod of a process. Takes a dictionary: root, component, role, process (its values).
*/}}
{{- define "landfall.pod" -}}
{{- $root := .root -}}
{{- $serves := has .role (list "all" "api") -}}
metadata:
  labels:
    {{- include "landfall.selector" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with $root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $root.Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "landfall.serviceAccount" $root }}
  # Landfall does not talk to Kubernetes.
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $root.Values.terminationGracePeriodSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: landfall
      image: "{{ $root.Values.image.repository }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}"
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop:
            - ALL
      env:
        - name: ROLE
          value: {{ .role }}
        - name: BIND_ADDRESS
          value: "0.0.0.0"
        - name: PORT
          value: "3002"
        - name: DATA_DIR
          value: /data
        - name: METRICS_ADDRESS
          value: "0.0.0.0:{{ $root.Values.metrics.port }}"
        {{- range $name, $value := merge (dict) .process.settings $root.Values.settings }}
        {{- if ne (toString $value) "" }}
        - name: {{ $name }}
          value: {{ $value | toString | quote }}
        {{- end }}
        {{- end }}
      envFrom:
        - secretRef:
            name: {{ $root.Values.existingSecret }}
      ports:
        {{- if $serves }}
        - name: http
          containerPort: 3002
        {{- end }}
        - name: metrics
          containerPort: {{ $root.Values.metrics.port }}
      # On the port for metrics, which answers also when the port for clients has no connection left.
      startupProbe:
        httpGet:
          path: /healthz
          port: metrics
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: {{ div $root.Values.startupSeconds 5 }}
      livenessProbe:
        httpGet:
          path: /healthz
          port: metrics
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: /readyz
          port: metrics
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      {{- if $serves }}
      lifecycle:
        preStop:
          exec:
            # Until no proxy sends new requests here any more.
            command: ["sleep", "5"]
      {{- end }}
      {{- with .process.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: data
          mountPath: /data
        - name: tmp
          mountPath: /tmp
  volumes:
    - name: data
      persistentVolumeClaim:
        claimName: {{ include "landfall.claim" $root }}
    - name: tmp
      emptyDir:
        sizeLimit: {{ $root.Values.temporary.sizeLimit }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
