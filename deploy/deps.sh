#!/bin/sh
# Installs the servers, the browser and the tools that the tests start. Where it cannot, it
# says what to install and fails. When all are there it does nothing.
set -eu

# Where deploy/lab looks after PATH, in its order.
for dir in /usr/local/sbin /usr/local/bin /usr/sbin \
	/usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
	/opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin; do
	PATH=$PATH:$dir
done

installed() { # any of BINARY|BINARY...
	for binary in $(echo "$1" | tr '|' ' '); do
		! command -v "$binary" >/dev/null || return 0
	done
	return 1
}

missing='' debian='' homebrew=''
while read -r binaries package formula; do
	[ "$formula" != - ] || [ "$(uname)" = Linux ] || continue # its tests need Linux, too
	installed "$binaries" && continue
	missing="$missing $binaries" debian="$debian $package" homebrew="$homebrew $formula"
done <<END
redis-server redis-server redis
mariadbd|mysqld mariadb-server mariadb
postgres postgresql postgresql@17
chromium chromium chromium
cc|gcc gcc gcc
ab apache2-utils -
ip iproute2 -
END
[ -n "$missing" ] || exit 0

root=
[ "$(id -u)" = 0 ] || root='sudo -n'
if ! command -v apt-get >/dev/null || ! $root true 2>/dev/null; then
	echo "Not installed, and needed by the tests:$missing" >&2
	echo "  Debian, Ubuntu: sudo apt-get install$debian" >&2
	echo "  macOS: brew install$homebrew" >&2
	exit 1
fi

# Debian starts a server as soon as it is installed. The tests start their own,
# so unless this machine has a policy already, one that forbids it stands until
# the installation is over. RUNLEVEL=1, often advised instead, has no effect
# under systemd. From the next boot on the services run, unless they are disabled:
# systemctl disable redis-server mariadb postgresql.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap '$root rm -f "$policy"' EXIT
	trap 'exit 1' HUP INT TERM
	printf '#!/bin/sh\nexit 101\n' | $root tee "$policy" >/dev/null
	$root chmod 755 "$policy"
fi

echo "Installing$debian"
apt='env DEBIAN_FRONTEND=noninteractive apt-get --quiet --option Acquire::Retries=3 --option DPkg::Lock::Timeout=120'
$root $apt update </dev/null
$root $apt install --yes --no-install-recommends $debian </dev/null
