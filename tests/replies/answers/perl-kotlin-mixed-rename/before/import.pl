#!/usr/bin/env perl
use strict;
use warnings;
use JSON::PP qw(decode_json);

local $/;
my $data = decode_json(<STDIN>);
my %seen;
for my $row (@{ $data->{accounts} }) {
    my $name = $row->{usr_nm} // die "no usr_nm in row $row->{id}\n";
    (my $safe = lc $name) =~ s{[^\w.\-]+}{_}gx;
    next if $seen{$safe}++;
    printf "%-6d %s <%s>\n", $row->{id}, $safe, join ',', @{ $row->{tags} // [] };
}
print <<"EOT";
${\ scalar keys %seen} accounts
EOT
__END__
=head1 NAME

import.pl - reads usr_nm and tags
